"""Formats figures and names as the report pages do: three digits and a scaled unit."""

from __future__ import annotations

from collections.abc import Sequence

Scales = Sequence[tuple[float, str]]

_SI: Scales = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1, ""))
_ENERGY: Scales = ((1e12, "J"), (1e9, "mJ"), (1e6, "µJ"), (1e3, "nJ"), (1, "pJ"))
_SECONDS: Scales = ((1, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_BINARY: Scales = ((2**50, "PiB"), (2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"), (1, "B"))
_SPACE = "\u202f"
_ALMOST = 0.9995  # 999.6 k would round to 1000 k, so it becomes 1 M
_LABELS = {
    "onchip_memory": "on-chip memory",
    "offchip": "off-chip",
    "optimizer_state": "optimizer state",
    "stored_activations": "stored activations",
}


def _digits(value: float) -> str:
    size = abs(value)
    if size == 0:
        return "0"
    if size >= 1:
        decimals = 0 if size >= 100 else 1 if size >= 10 else 2
        text = f"{value:.{decimals}f}"
        return text.rstrip("0").rstrip(".") if decimals else text
    return f"{float(f'{value:.2g}'):g}"


def _scaled(value: float, scales: Scales) -> str:
    scale, unit = next((pair for pair in scales if abs(value) >= pair[0] * _ALMOST), scales[-1])
    return _digits(value / scale) + (_SPACE + unit if unit else "")


def si(value: float, unit: str = "") -> str:
    """A number with an SI prefix and its unit: 1234567 becomes "1.23 M" followed by the unit."""
    return _scaled(value, [(scale, prefix + unit) for scale, prefix in _SI])


def energy(pj: float) -> str:
    return _scaled(pj, _ENERGY)


def seconds(value: float) -> str:
    return _scaled(value, _SECONDS)


def size(value: float) -> str:
    """A number of bytes, in KiB, MiB and so on."""
    return _scaled(value, _BINARY)


def percent(fraction: float) -> str:
    value = fraction * 100
    if value != 0 and abs(value) < 0.1:
        return f"<0.1{_SPACE}%"
    return (f"{value:.0f}" if value >= 10 else f"{value:.1f}".removesuffix(".0")) + _SPACE + "%"


def label(key: str) -> str:
    """A key of result.json, without its unit, as words."""
    return _LABELS.get(key, key.replace("_", " "))
