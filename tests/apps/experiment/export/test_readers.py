"""A study with groups, factors and forms, read by pandas, R and the BIDS validator, and erased without a trace."""

from __future__ import annotations

import json
import lzma
import shutil
import subprocess
import zipfile
from collections import Counter

import pytest

from apps.cli import main
from apps.experiment.journal.erasure import RECORD
from tests.apps.experiment.designs import WEBER, changed
from tests.apps.experiment.export.validator import bids_errors
from tests.apps.experiment.session.running import simulate

CODES = ("P01", "P02", "P03", "Q77")

STUDY = """\
[factors]
exclude = [{ friction = "strong", damping = "high" }]
friction.weak = { reference = 1.0 }
friction.strong = { reference = 2.0 }
damping.low = { element = { damping = 2.0 } }
damping.high = { element = { damping = 8.0 } }

[groups]
names = ["wet", "dry"]
block = 2

[[forms]]
name = "workload"
use = "nasa-tlx"
when = "between"

[[forms]]
name = "comfort"
items = [
    { name = "tired", text = 'Müde, "sehr"?', points = 5 },
    { name = "hand_used", kind = "choice", text = "Hand?", options = { r = "right", l = "left" } },
    { name = "remark", kind = "text", text = "Remark?", required = false },
]
scores = { ease = { reverse = ["tired"] } }

"""


def design(folder):
    """Write a study of six trials in three conditions."""
    head, tail = WEBER.split("[[conditions]]", 1)
    rest = tail[tail.index("[procedure]") : tail.index("[catch]")] + tail[tail.index("[trials]") :]
    rest = rest.replace("most_trials = 4", "most_trials = 2").replace("block = 5", "block = 3")
    return changed(folder, text=head + STUDY + rest)


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Sessions of four participants without recordings, and exports, a page and an archive in the same folder."""
    folder = tmp_path_factory.mktemp("study")
    out = folder / "data"
    for code in CODES:
        shutil.rmtree(simulate(design(folder), out, code)[1].folder / "blocks")
    for form in ("csv", "bids", "psych-ds"):
        assert main(["experiment", "export", str(out), "--to", form, "--out", str(out / form)]) == 0
    (out / "report.html").write_text("<td>Q77</td>")
    licence = ["--license", "CC0-1.0", "--author", "A. Author"]
    assert main(["experiment", "archive", str(out), *licence, "--out", str(out / "all.zip")]) == 0
    return out


def test_csv_exports_are_read_and_joined_by_pandas(study):
    pandas = pytest.importorskip("pandas")
    names = ("trials", "participants", "forms", "forms_codebook")
    trials, people, forms, codebook = (pandas.read_csv(study / "csv" / f"{name}.csv") for name in names)
    trials = trials[trials["counts"] & (trials["kind"] == "test")]
    assert len(trials) == 24 and people["participant"].tolist() == list(CODES)
    assert Counter(people["group"]) == {"wet": 2, "dry": 2}
    assert trials.groupby("participant")["group"].unique().str.len().eq(1).all()
    cells = trials.groupby(["factor_friction", "factor_damping"])["reference"].agg(["size", "unique"])
    assert cells["size"].to_dict() == {("strong", "low"): 8, ("weak", "high"): 8, ("weak", "low"): 8}
    assert trials["correct"].dtype == bool and trials["level"].dtype == float
    joined = forms[forms["entry"] == "score"].merge(people[["participant", "group"]])
    scores = joined.pivot_table(index="group", columns=["form", "item"], values="number")
    assert list(scores.index) == ["dry", "wet"] and ("workload", "raw") in scores and scores.notna().all(axis=None)
    assert forms["number"].dtype == float and {0, 1} <= set(forms["after_blocks"])
    assert codebook.set_index("item").loc["tired", "question"] == 'Müde, "sehr"?'


@pytest.mark.skipif(shutil.which("Rscript") is None, reason="R is not installed (Debian: r-base-core)")
def test_csv_exports_are_read_and_joined_by_r(study):
    script = """
        source("read.R"); source("read_forms.R")
        trials <- subset(read_trials("."), counts & kind == "test"); people <- read_participants(".")
        forms <- read_forms("."); codes <- read_codebook(".")
        stopifnot(is.numeric(trials$level), is.logical(trials$correct), is.character(trials$factor_damping))
        cells <- aggregate(level ~ factor_friction + factor_damping, trials, length)
        stopifnot(nrow(cells) == 3, all(cells$level == 8))
        stopifnot(all(table(people$group) == 2), nrow(merge(trials, people[c("participant", "group")])) == 24)
        scores <- merge(subset(forms, entry == "score"), people[c("participant", "group")], by = "participant")
        means <- aggregate(number ~ group + form + item, scores, mean)
        stopifnot(nrow(means) >= 4, !anyNA(means$number))
        cat(codes$question[codes$item == "tired"])
    """
    command = ["Rscript", "--vanilla", "-e", script]
    done = subprocess.run(command, cwd=study / "csv", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith('de, "sehr"?')


@pytest.mark.parametrize("name", ["bids", "archive"])
def test_bids_validator_finds_no_error_in_groups_factors_and_forms(study, name, tmp_path):
    folder = study / name
    if name == "archive":
        with zipfile.ZipFile(study / "all.zip") as file:
            file.extractall(tmp_path)
        folder = tmp_path / "all"
    assert bids_errors(folder) == []


def traces(folder, code):
    """Return the files with a code in their path or bytes, also in the path or bytes of members of archives."""
    found = []
    for path in folder.rglob("*"):
        parts = [str(path.relative_to(folder)).encode(), path.read_bytes() if path.is_file() else b""]
        if path.suffix == ".zip":
            with zipfile.ZipFile(path) as file:
                parts += [part for one in file.infolist() for part in (one.filename.encode(), file.read(one))]
        if path.suffix == ".xz":
            parts.append(lzma.decompress(parts[1]))
        if any(code.encode() in part for part in parts):
            found.append(path.relative_to(folder).as_posix())
    return found


def test_erasing_leaves_no_trace_of_the_code(study, tmp_path, capsys):
    out = tmp_path / "data"
    shutil.copytree(study, out)
    (out / "backup.xz").write_bytes(lzma.compress((out / "csv" / "trials.csv").read_bytes()))
    assert {"csv/trials.csv", "bids/participants.tsv", "report.html", "all.zip", "backup.xz"} <= {*traces(out, "Q77")}
    others = {path: path.read_bytes() for path in out.glob("sub-P*/**/*") if path.is_file()}
    command = ["experiment", "erase", "Q77", "--out", str(out), "--json"]
    assert main([*command, "--yes"]) == 0
    told = json.loads(capsys.readouterr().out)
    kept = {"csv", "bids", "psych-ds", "report.html", "all.zip", "backup.xz"}
    assert {path.removeprefix(f"{out}/") for path in told["copies"]} == kept and told["mentions"] == []
    assert {name.split("/")[0] for name in traces(out, "Q77")} == {RECORD, *kept}
    assert main([*command, "--yes", "--copies"]) == 0
    assert traces(out, "Q77") == [RECORD]
    assert {path: path.read_bytes() for path in out.glob("sub-P*/**/*") if path.is_file()} == others
