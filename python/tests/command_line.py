"""Where the repository and its command line are, and what that prints."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "data"
TOOL = os.environ.get("MONET_BINARY", str(ROOT / "build/dev/apps/monet/monet"))
NETWORK = DATA / "workload" / "resnet8_16.onnx"
SMALL = DATA / "workload" / "ds_cnn.onnx"
CHIP = DATA / "hardware" / "edge_tpu.yaml"


def command(*words: object) -> str:
    ended = subprocess.run([TOOL, *map(str, words), "--json", "-"], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout
