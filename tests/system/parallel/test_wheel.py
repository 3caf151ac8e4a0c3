"""The installed package: content of the wheel, execution, and conflicts with other packages."""

import json
import subprocess
import sys
import zipfile

import pytest

from tests.processes import ROOT
from tests.system.parallel.commands import run_python

COMMAND = "import sys, haptics; sys.exit(haptics.main())"
PACKAGES = ("haptics", "devices", "calibration", "apps")


def run(*arguments, path, **options):
    """Run the command of the packages in the folder `path`, with the folder of the script left out of the path."""
    return run_python("-P", "-c", COMMAND, *arguments, path=path, **options)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*pip, "--wheel-dir", str(folder), str(ROOT)], check=True, capture_output=True, text=True)
    (built,) = folder.glob("haptics-*.whl")
    return built


def test_the_wheel_has_all_that_is_needed_and_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {name.partition("/")[0] for name in names if ".dist-info" not in name} == set(PACKAGES)
    assert {f"{package}/py.typed" for package in PACKAGES} <= set(names)
    kept = {path.relative_to(ROOT).as_posix() for package in PACKAGES for path in (ROOT / package).rglob("*.*")}
    assert {name for name in kept if "__pycache__" not in name and not (ROOT / name).is_dir()} <= set(names)


def test_the_demonstration_runs_from_the_wheel(wheel, tmp_path):
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    done = run("demo", "--headless", "--duration", "0.5", "--json", path=tmp_path / "site", folder=tmp_path)
    assert json.loads(done.stdout)["ticks"] > 100
    assert (tmp_path / "recordings").is_dir()


@pytest.mark.parametrize("name", ["apps", "devices"])
def test_a_foreign_package_of_the_same_name_is_said_in_one_line(name, tmp_path):
    (tmp_path / name).mkdir()
    (tmp_path / name / "__init__.py").write_text("")
    done = run("--version", path=tmp_path, folder=tmp_path, status=2)
    assert f"the package '{name}' comes from another project ({tmp_path / name})" in done.stderr
    assert "virtual environment of its own" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_package_that_is_missing_is_said_in_one_line(tmp_path):
    (tmp_path / "haptics").symlink_to(ROOT / "haptics")
    code = f"import sys; sys.path[:] = [p for p in sys.path if {str(ROOT)!r} not in p]; {COMMAND}"
    done = run_python("-P", "-S", "-c", code, path=tmp_path, folder=tmp_path, status=2)
    assert "the package 'devices' is missing" in done.stderr


def test_the_command_is_that_of_the_packages_here(tmp_path):
    assert run("--version", path=ROOT, folder=tmp_path).stdout.startswith("haptics ")
