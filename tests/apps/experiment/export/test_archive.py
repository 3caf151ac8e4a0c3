"""Archive for a repository: licence, codebook, and the data that may be published only."""

import json
import zipfile
from pathlib import Path

import pytest

from apps.experiment import command
from apps.experiment.export.archive import LICENSES, WITHHELD, archive
from apps.experiment.trial_log import TrialLog
from haptics.errors import ConfigurationError

ANSWERS = {"remark": "I am Anna Example", "hand": "r", "age": 31}


def session(out, code, asked=False, **consent):
    """Write a session with a form and, if given, a consent. `asked`: its experiment has a consent page."""
    with TrialLog.open(out, code, "wood", axis="law.force", fields={"consent_id": "C17", "age_band": "20-29"}) as log:
        log.begin_block()
        log.begin_trial(0.5, values=(2.0, 2.5), comparison=2)
        log.finish_trial("2", correct=True)
    lines = log.place.journal.read_text(encoding="utf-8").splitlines()
    events = [{"name": "consent", "agreed": True, **consent}] if consent else []
    events.append({"name": "form-completed", "form": "end", "after_blocks": 1, "answers": ANSWERS, "scores": {}})
    common = {"record": "event", "utc": "2026-11-28T10:00:00+00:00", "monotonic_ns": 1}
    header = json.loads(lines[0])
    header["design"] |= {"consent": {"version": "1.0"}} if asked else {}
    # before the record of the end
    body, end = [json.dumps(header), *lines[1:-1]], json.loads(lines[-1])
    body += [json.dumps({**common, **event, "number": len(body) + k}) for k, event in enumerate(events)]
    body.append(json.dumps({**end, "number": len(body)}))
    log.place.journal.write_text("\n".join(body) + "\n", encoding="utf-8")
    return log.place


def contents(folder):
    return "".join(path.read_text(encoding="utf-8") for path in Path(folder).rglob("*") if path.is_file())


def test_only_shared_sessions_without_identifying_data_are_archived(tmp_path):
    session(tmp_path / "data", "P01", sharing=True)
    session(tmp_path / "data", "P02", sharing=False)
    session(tmp_path / "data", "P03")
    session(tmp_path / "data", "P04", asked=True)  # ended before the consent page was answered
    out = tmp_path / "archive"
    result = archive([tmp_path / "data"], out, licence="CC-BY-4.0", authors=["A. Author"])
    assert (result["sessions"], result["left_out"]) == (2, 2)
    text = contents(out)
    assert not any(word in text for word in ("P02", "P04", "C17", "Anna")) and WITHHELD in text and "20-29" in text
    facts = json.loads((out / "dataset_description.json").read_text(encoding="utf-8"))
    assert (facts["License"], facts["Authors"]) == ("CC-BY-4.0", ["A. Author"])
    form = out / "sub-P01" / "ses-01" / "beh" / "sub-P01_ses-01_task-formend_beh"
    table = form.with_suffix(".tsv").read_text(encoding="utf-8").splitlines()
    assert table[0].split("\t") == ["after_blocks", "completed_utc", "remark", "hand", "age"]
    assert table[1].split("\t")[-1] == "31" and len(table) == 2
    assert set(json.loads(form.with_suffix(".json").read_text(encoding="utf-8"))) >= {"TaskName", *table[0].split("\t")}
    assert LICENSES["CC-BY-4.0"][1] in (out / "LICENSE").read_text(encoding="utf-8")
    assert "delivered_1" in (out / "codebook.csv").read_text(encoding="utf-8")
    archive([tmp_path / "data"], out, licence="CC0-1.0", authors=["A. Author"], with_text=True)
    assert "I am Anna Example" in contents(out)


def test_archive_is_one_file_that_is_never_replaced(tmp_path):
    place = session(tmp_path / "data", "P01", sharing=True)
    sidecar = json.loads(place.sidecar.read_text(encoding="utf-8"))
    texts = {"design_text": 'conditions = "c.csv"', "conditions_text": "name,reference\na,1.0\n"}
    place.sidecar.write_text(json.dumps(sidecar | texts), encoding="utf-8")
    out = tmp_path / "study.zip"
    archive([tmp_path / "data"], out, licence="CC0-1.0", authors=["A. Author"])
    with zipfile.ZipFile(out) as file:
        assert file.testzip() is None and "study/dataset_description.json" in file.namelist()
        code = {Path(name).suffix: file.read(name).decode() for name in file.namelist() if "/code/" in name}
    assert code == {".toml": texts["design_text"], ".csv": texts["conditions_text"]}
    with pytest.raises(ConfigurationError, match="is there already"):
        archive([tmp_path / "data"], out, licence="CC0-1.0", authors=["A. Author"])


def test_nothing_to_publish_is_refused(tmp_path):
    session(tmp_path / "data", "P01", sharing=False)
    with pytest.raises(ConfigurationError, match=r"consent\.sharing"):
        archive([tmp_path / "data"], tmp_path / "a", licence="CC0-1.0", authors=["A. Author"])
    assert not (tmp_path / "a").exists()
    assert tuple(LICENSES) == command._LICENSES
