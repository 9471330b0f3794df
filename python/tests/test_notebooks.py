"""Every notebook of examples/notebooks runs, and holds what it asserts."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import monet
import pytest

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
LIMIT = 120  # seconds a cell may take; a notebook takes some ten in all


def test_there_are_notebooks() -> None:
    assert len(NOTEBOOKS) >= 2


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_is_stored_without_what_it_printed(path: Path) -> None:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
    assert any("assert " in "".join(cell["source"]) for cell in code)
    assert 8 <= len(notebook["cells"]) <= 15
    assert notebook["nbformat"] == 4


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs notebooks with this interpreter and this package."""
    for needed in ("matplotlib", "pandas", "ipykernel"):
        pytest.importorskip(needed)
    nbconvert = pytest.importorskip("nbconvert.preprocessors")
    package = Path(monet.__file__).resolve().parents[1]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(package), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setenv("PYDEVD_DISABLE_FILE_VALIDATION", "1")
    for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name))  # no user's settings, and nothing left at home
    return nbconvert.ExecutePreprocessor(timeout=LIMIT, kernel_name="python3")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs(path: Path, kernel: Any) -> None:
    nbformat = pytest.importorskip("nbformat")
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    kernel.preprocess(notebook, {"metadata": {"path": str(FOLDER)}})
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert not [output for output in outputs if output.output_type == "error"]
    assert any("image/png" in output.get("data", {}) for output in outputs)
    assert "Warning" not in "".join(output.text for output in outputs if output.get("name") == "stderr")
