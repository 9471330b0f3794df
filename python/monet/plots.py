"""Plots of a result with matplotlib, in the colours and words of the report pages."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from monet import arguments, units

if TYPE_CHECKING:
    from monet.columns import Columns
    from monet.results import Result

Array = np.ndarray[Any, Any]

# Colours of the light theme in web/src/report.css.
PHASES = {
    "forward": "#0072b2",
    "loss": "#b04f8c",
    "backward": "#d55e00",
    "update": "#00865f",
    "recompute": "#4aa3d8",
    "other": "#7b8794",
}
OWNERS = {
    "parameters": "#332288",
    "gradients": "#cc6677",
    "optimizer_state": "#44aa99",
    "stored_activations": "#ddcc77",
    "temporaries": "#aab2bb",
}
PARTS = {
    "compute": "#4477aa",
    "onchip_memory": "#66ccee",
    "links": "#ccbb44",
    "offchip": "#aa3377",
    "leakage": "#999933",
}
TEXT = "#16202b"
MUTED = "#5c6773"
LINE = "#e3e6ea"
LANE = "#f3f5f8"

_MOST_BARS = 20_000  # maximum drawn one by one; beyond, bars narrower than a column are summed
_COLUMNS = 2_000  # columns of a timeline or a memory chart, finer than print
_WIDTH = 9.0  # inches


class Plots:
    """Plots of a result: `result.plot.timeline()` and others.

    Each method draws into `ax`, or into a new figure, and returns the matplotlib Axes. Save it with
    `.figure.savefig("timeline.pdf")`. The title is above the legend: `ax.set_title(text,
    loc="left", pad=22)` replaces it. Raises ImportError without matplotlib."""

    def __init__(self, result: Result) -> None:
        self._result = result
        self._matplotlib()

    def timeline(self, ax: Any = None, *, lanes: int = 6) -> Any:
        """The runs of every core, by phase, and below them the transfers of the busiest `lanes`
        links and of the off-chip ports. Beyond 20,000 bars, those narrower than 1/2000 of the step
        are summed, and drawn fainter where they fill less of the time."""
        figures = self._figures
        rows = self._timeline_rows(arguments.whole("lanes", lanes, 0, 2**31))
        ax = self._axes(ax, 1.0 + 0.25 * max(len(rows), 2))
        latency = max(int(figures["latency_cycles"]), 1)
        if not rows:
            return self._nothing(ax, "The result has no timeline")
        names = [*PHASES]
        number = {name: i for i, name in enumerate(names)}
        layers = self._result.layers
        of_operator = np.empty(layers.rows, np.int64)
        of_operator[layers["operator"]] = [number.get(phase, number["other"]) for phase in layers["phase"]]
        bars = _Bars(ax, self._module("collections"), latency, sum(len(row.start) for row in rows))
        y = 0.0
        tops = []
        for i, row in enumerate(rows):
            if i == 0 or row.group != rows[i - 1].group:
                y += 0.75
                ax.text(0, y - 0.15, row.group, ha="left", va="bottom", fontsize=6, color=MUTED, weight="bold")
            tops.append(y)
            height = 0.86 if row.group == "CORES" else 0.6
            ax.axhspan(y, y + height, color=LANE, linewidth=0, zorder=0)
            bars.draw(row, y, height, of_operator, names)
            y += height + 0.14
        self._phase_band(ax, y)
        heights = [0.86 if row.group == "CORES" else 0.6 for row in rows]
        ax.set_yticks([top + height / 2 for top, height in zip(tops, heights)], [row.label for row in rows])
        ax.set_ylim(y, -0.55)
        ax.tick_params(axis="y", length=0)
        self._cycles_axis(ax, latency)
        patches = self._module("patches")
        shown = [name for name in names if name in bars.phases]
        self._legend(ax, [patches.Patch(color=PHASES[name], label=name) for name in shown])
        return self._titled(ax, self._result.name)

    def memory(self, ax: Any = None) -> Any:
        """Live bytes by owner over the step. Each tensor counts once, regardless of its copies."""
        figures = self._figures
        ax = self._axes(ax, 2.9)
        samples = self._result.memory_over_time
        if samples.rows == 0:
            return self._nothing(ax, "The result has no memory contents over time")
        latency = max(int(figures["latency_cycles"]), 1)
        cycles, held = _highest_samples(samples, latency)
        base = np.zeros(len(cycles), np.int64)
        handles = []
        for owner, colour in OWNERS.items():
            if not held[owner].any():
                continue
            above = base + held[owner]
            at_peak = int(figures["memory"].get(f"{owner}_bytes", 0))
            handles.append(
                ax.fill_between(cycles, base, above, step="post", color=colour, linewidth=0, zorder=2,
                                label=f"{units.label(owner)} {units.size(at_peak)}")  # fmt: skip
            )
            base = above
        peak = int(figures["peak_memory_bytes"])
        top = max(int(base.max()), peak, 1) * 1.13
        at = int(figures["memory"].get("peak_cycle", 0))
        late = at > latency / 2
        ax.plot([at, at], [0, peak], color=TEXT, linewidth=0.8, linestyle=(0, (4, 3)), zorder=4)
        self._haloed(ax, at, peak, f" peak {units.size(peak)} ", ha="right" if late else "left", va="bottom")
        inference = figures.get("inference")
        if inference is not None and inference["peak_memory_bytes"] <= top:
            alone = int(inference["peak_memory_bytes"])
            ax.axhline(alone, color=TEXT, linewidth=0.8, linestyle=(0, (4, 3)), zorder=4)
            text = f"inference alone peaks at {units.size(alone)} "
            self._haloed(ax, latency, alone, text, ha="right", va="bottom")
        step = 2 ** math.ceil(math.log2(max(top / 6, 1)))
        ticks = range(0, math.ceil(top), step)
        ax.set_yticks(ticks, [units.size(tick) for tick in ticks])
        ax.set_ylim(0, top)
        ax.set_ylabel("live memory")
        ax.grid(axis="y", color=LINE, linewidth=0.8, zorder=0)
        self._cycles_axis(ax, latency)
        self._legend(ax, handles[::-1])
        return self._titled(ax, self._result.name)

    def energy(self, ax: Any = None, *, by: str = "phase") -> Any:
        """Energy by phase, or by operator type (`by="type"`, without leakage of memories), divided
        into compute, memories, links and off-chip memory."""
        arguments.one_of("by", by, ("phase", "type"))
        rows = self._energy_by_phase() if by == "phase" else self._energy_by_type()
        ax = self._axes(ax, 1.1 + 0.3 * max(len(rows), 2))
        total = max(float(self._figures["energy_pj"]), 1e-300)
        sums = [sum(parts.values()) for _, parts in rows]
        most = max(sums, default=0.0)
        if most <= 0:
            return self._nothing(ax, "No energy is used")
        left = np.zeros(len(rows))
        handles = []
        for part, colour in PARTS.items():
            wide = np.array([parts[part] for _, parts in rows])
            if not wide.any():
                continue
            share = units.percent(self._figures["energy"].get(f"{part}_pj", 0.0) / total)
            handles.append(
                ax.barh(range(len(rows)), wide, left=left, height=0.7, color=colour, edgecolor="white", linewidth=0.5,
                        zorder=2, label=f"{units.label(part)} {share}")  # fmt: skip
            )
            left = left + wide
        for i, value in enumerate(sums):
            ax.text(value + most * 0.01, i, units.energy(value), va="center", fontsize=8, color=TEXT, weight="bold")
        ax.set_yticks(range(len(rows)), [name for name, _ in rows])
        ax.tick_params(axis="y", length=0)
        ax.set_ylim(len(rows) - 0.4, -0.6)
        ax.set_xlim(0, most * 1.12)
        ticks = _round_ticks(most, 5)
        ax.set_xticks(ticks, ["0" if tick == 0 else units.energy(tick) for tick in ticks])
        ax.set_xlabel("energy")
        ax.grid(axis="x", color=LINE, linewidth=0.8, zorder=0)
        self._legend(ax, handles)
        return self._titled(ax, self._result.name)

    def roofline(self, ax: Any = None) -> Any:
        """Roofline of the operators with MACs: MACs per off-chip byte against MACs per cycle, from
        an operator's first tile to its last. The roofs are the MACs per cycle of the arrays and the
        bandwidth of the off-chip ports. An operator whose operands are fetched before its first
        tile may lie above the slope. An operator without off-chip bytes is a triangle at the right
        edge."""
        layers = self._result.layers
        ax = self._axes(ax, 4.2, 6.5)
        is_product = (layers["macs"] > 0) & (layers["span_cycles"] > 0)
        if not is_product.any():
            return self._nothing(ax, "No operator multiplies")
        macs = layers["macs"][is_product].astype(float)
        rate = macs / layers["span_cycles"][is_product]
        moved = layers["offchip_bytes"][is_product]
        phases = np.array([p if p in PHASES else "other" for p in layers["phase"][is_product]], dtype=object)
        intensity = np.where(moved > 0, macs / np.maximum(moved, 1), np.inf)
        peak, bandwidth = self._roofs()
        knee = peak / bandwidth if bandwidth > 0 and peak > 0 else 1.0
        finite = intensity[np.isfinite(intensity)]
        low = min([knee / 4, *finite]) / 1.6
        high = max([knee * 4, *finite]) * 1.6
        if not np.isfinite(intensity).all():
            high *= 1.6
        bottom = min(rate.min(), peak if peak > 0 else np.inf) / 2
        if bandwidth > 0:
            bottom = min(bottom, max(bandwidth * low, rate.min() / 20))
        top = max(rate.max(), peak) * 2.2
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_xlim(low, high)
        ax.set_ylim(bottom, top)
        self._draw_roofs(ax, peak, bandwidth, knee, (low, high))
        for phase, colour in PHASES.items():
            for inside, marker in ((True, "o"), (False, ">")):
                chosen = (phases == phase) & (np.isfinite(intensity) == inside)
                if chosen.any():
                    x = intensity[chosen] if inside else np.full(int(chosen.sum()), high / 1.18)
                    points = ax.scatter(x, rate[chosen], s=26, marker=marker, color=colour, alpha=0.75,
                                        edgecolors="white", linewidths=0.5, zorder=3)  # fmt: skip
                    points.set_gid(f"operators {phase}")
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_formatter(self._module("ticker").FuncFormatter(lambda value, _: units.si(value)))
            axis.set_minor_formatter(self._module("ticker").NullFormatter())
        ax.set_xlabel("MACs per off-chip byte")
        ax.set_ylabel("MACs per cycle")
        ax.grid(which="major", color=LINE, linewidth=0.8, zorder=0)
        lines = self._module("lines")
        names = [name for name in PHASES if (phases == name).any()]
        marks: dict[str, Any] = {"linestyle": "", "marker": "o", "markersize": 5, "markeredgecolor": "white"}
        handles = [lines.Line2D([], [], color=PHASES[name], label=name, **marks) for name in names]
        if not np.isfinite(intensity).all():
            marks["marker"] = ">"
            handles.append(lines.Line2D([], [], color=MUTED, label="no off-chip bytes", **marks))
        self._legend(ax, handles)
        return self._titled(ax, self._result.name)

    # --- Data ----------------------------------------------------------------------------------

    @property
    def _figures(self) -> dict[str, Any]:
        return self._result._figures

    def _timeline_rows(self, lanes: int) -> list[_Row]:
        """Rows of the cores with tiles, of the busiest links in use, and of the off-chip ports."""
        figures = self._figures
        tiles = self._result.tiles
        rows = []
        order = np.argsort(tiles["core"], kind="stable")
        starts, ends, operators = (tiles[key][order] for key in ("start_cycle", "end_cycle", "operator"))
        begin = np.searchsorted(tiles["core"][order], np.arange(len(figures["cores"]) + 1))
        for core in figures["cores"]:
            run = slice(begin[core["id"]], begin[core["id"] + 1])
            if run.stop > run.start:
                name = f"{core['id']} {core['name']}"
                rows.append(_Row("CORES", _row_label(name, core), starts[run], ends[run], operators[run]))
        by_link: dict[int, list[list[int]]] = {}
        reads: list[list[int]] = []
        writes: list[list[int]] = []
        offchip = next((core["id"] for core in figures["cores"] if core["kind"] == "offchip"), None)
        for row in figures.get("timeline", {}).get("transfers", []):
            bar = row[3:5] + row[2:3]
            for link in row[1]:
                by_link.setdefault(link, []).append(bar)
            if offchip is not None:
                if row[6] == offchip:
                    reads.append(bar)
                if row[7] == offchip or (len(row) > 9 and offchip in row[9]):
                    writes.append(bar)
        links = [link for link in figures.get("links", []) if link["id"] in by_link]
        busiest = sorted(links, key=lambda link: (-link["busy_cycles"], link["id"]))[:lanes]
        rest = len(links) - len(busiest)
        group = "LINKS" if rest == 0 else f"THE {len(busiest)} BUSIEST OF {len(links)} LINKS".replace("THE 1 ", "THE ")
        for link in sorted(busiest, key=lambda link: int(link["id"])):
            rows.append(_row_of(group, _row_label(link["name"], link), by_link[link["id"]]))
        ports = figures.get("ports", [])
        for port, bars in zip(ports, [reads + writes] if len(ports) == 1 else [reads, writes]):
            if bars:
                rows.append(_row_of("OFF-CHIP PORTS", _row_label(port["name"], port), bars))
        return rows

    def _energy_by_phase(self) -> list[tuple[str, dict[str, float]]]:
        figures = self._figures
        rows = [(phase["phase"], _parts(phase["energy"])) for phase in figures["phases"]]
        rows = rows or [("total", _parts(figures["energy"]))]
        if figures.get("inference") is not None:
            rows.append(("inference alone", _parts(figures["inference"]["energy"])))
        return rows

    def _energy_by_type(self) -> list[tuple[str, dict[str, float]]]:
        """The eight operator types with the most energy, and all others together."""
        types: dict[str, dict[str, float]] = {}
        for layer in self._figures["layers"]:
            held = types.setdefault(layer["op_type"], dict.fromkeys(PARTS, 0.0))
            for part, value in _parts(layer["energy"]).items():
                held[part] += value
        rows = sorted(types.items(), key=lambda row: (-sum(row[1].values()), row[0]))
        if len(rows) > 9:
            rest = {part: sum(parts[part] for _, parts in rows[8:]) for part in PARTS}
            rows = [*rows[:8], (f"{len(rows) - 8} other types", rest)]
        return rows

    def _roofs(self) -> tuple[float, float]:
        """MACs per cycle of all arrays together, and bytes per cycle of the off-chip ports."""
        figures = self._figures
        used = {core for layer in figures["layers"] if layer["macs"] > 0 for core in layer["cores"]}
        peak = 0.0
        for core, parts in zip(figures["cores"], figures["hardware"]["cores"]):
            array = parts.get("array")
            if array is not None and (core["kind"] == "array" or core["id"] in used):
                products = max((mode["products"] for mode in array.get("modes", [])), default=1)
                peak += array["lanes"] * products / array.get("imc", {}).get("cycles_per_mac", 1)
        return peak, sum(port["bandwidth_bits_per_cycle"] for port in figures.get("ports", [])) / 8

    # --- Drawing -------------------------------------------------------------------------------

    @staticmethod
    def _matplotlib() -> Any:
        try:
            return importlib.import_module("matplotlib")
        except ImportError as error:
            raise ImportError("pictures need matplotlib: pip install matplotlib, or 'monet[plot]'") from error

    @staticmethod
    def _module(name: str) -> Any:
        return importlib.import_module("matplotlib." + name)

    def _axes(self, ax: Any, height: float, width: float = _WIDTH) -> Any:
        if ax is not None and not isinstance(ax, self._module("axes").Axes):
            raise TypeError(f"ax: {arguments.kind_of(ax)} is not a matplotlib Axes")
        if ax is None:
            _, ax = self._module("pyplot").subplots(figsize=(width, height), constrained_layout=True)
        for side in ("top", "right", "left", "bottom"):
            ax.spines[side].set_visible(False)
        ax.tick_params(colors=MUTED, labelsize=8, width=0.8, which="both")
        ax.tick_params(axis="y", which="both", length=0)
        ax.xaxis.label.set(color=MUTED, fontsize=8)
        ax.yaxis.label.set(color=MUTED, fontsize=8)
        ax.set_axisbelow(True)
        return ax

    @staticmethod
    def _nothing(ax: Any, text: str) -> Any:
        ax.set_xticks([])
        ax.set_yticks([])
        ax.text(0.5, 0.5, text, ha="center", va="center", color=MUTED, fontsize=9, transform=ax.transAxes)
        return ax

    @staticmethod
    def _titled(ax: Any, title: str) -> Any:
        ax.set_title(title.replace("$", r"\$"), loc="left", fontsize=10, color=TEXT, weight="bold", pad=22)
        return ax

    @staticmethod
    def _legend(ax: Any, handles: Sequence[Any]) -> None:
        if handles:
            ax.legend(handles=handles, loc="lower left", bbox_to_anchor=(0, 1), ncol=len(handles), frameon=False,
                      fontsize=8, labelcolor=TEXT, borderaxespad=0.3, borderpad=0, handlelength=1, handleheight=1,
                      handletextpad=0.5, columnspacing=1.5)  # fmt: skip

    def _haloed(self, ax: Any, x: float, y: float, text: str, **where: Any) -> None:
        effects = [self._module("patheffects").withStroke(linewidth=2.5, foreground="white")]
        ax.text(x, y, text, fontsize=8, color=TEXT, weight="bold", path_effects=effects, zorder=5, **where)

    def _cycles_axis(self, ax: Any, latency: int) -> None:
        ticks = _round_ticks(latency, 8)
        step = ticks[1] - ticks[0] if len(ticks) > 1 else max(latency, 1)
        ax.set_xticks(ticks, [_cycles(tick, step) for tick in ticks])
        ax.set_xlim(0, latency)
        frequency = self._figures.get("frequency_hz")
        ax.set_xlabel("cycles" + (f" at {units.si(frequency, 'Hz')}" if frequency else ""))

    def _phase_band(self, ax: Any, bottom: float) -> None:
        """Draws the phases above the rows, and faintly behind them."""
        at = 0.0
        for phase in self._figures["phases"]:
            wide = phase["latency_cycles"]
            colour = PHASES.get(phase["phase"], PHASES["other"])
            ax.fill_between([at, at + wide], -0.45, 0.05, color=colour, linewidth=0, zorder=2)
            ax.fill_between([at, at + wide], 0.05, bottom, color=colour, alpha=0.05, linewidth=0, zorder=1)
            if wide > len(phase["phase"]) * 0.012 * self._figures["latency_cycles"]:
                ax.text(at + wide / 2, -0.2, phase["phase"], ha="center", va="center", fontsize=7, color="white",
                        weight="bold", zorder=3)  # fmt: skip
            at += wide

    def _draw_roofs(self, ax: Any, peak: float, bandwidth: float, knee: float, span: tuple[float, float]) -> None:
        low, high = span
        style: dict[str, Any] = {"color": TEXT, "linewidth": 1.2, "zorder": 2}
        if bandwidth > 0 and peak > 0:
            ax.plot([low, knee], [bandwidth * low, peak], **style)
            text = f"off-chip: {bandwidth:g} B per cycle"
            x = max(low, ax.get_ylim()[0] / bandwidth)
            middle = math.exp((math.log(x) + math.log(knee)) / 2)
            slope = math.degrees(math.atan(bandwidth))  # in data coordinates; the text is rotated with them
            rotation = {"rotation": slope, "rotation_mode": "anchor", "transform_rotates_text": True}
            ax.text(middle, bandwidth * middle * 1.12, text, ha="center", va="bottom", fontsize=8, color=MUTED,
                    **rotation)  # fmt: skip
        if peak > 0:
            ax.plot([knee if bandwidth > 0 else low, high], [peak, peak], **style)
            ax.text(high, peak * 1.08, f"lanes: {units.si(peak)} MACs per cycle ", ha="right", va="bottom", fontsize=8,
                    color=MUTED)  # fmt: skip


class _Row:
    """The bars of a core, link or port."""

    def __init__(self, group: str, label: str, start: Array, end: Array, operator: Array) -> None:
        self.group = group
        self.label = label
        self.start = start
        self.end = end
        self.operator = operator


def _row_of(group: str, label: str, bars: list[list[int]]) -> _Row:
    start, end, operator = np.array(bars, np.int64).T
    return _Row(group, label, start, end, operator)


def _row_label(name: str, figures: Mapping[str, Any]) -> str:
    name = name if len(name) <= 24 else name[:23] + "…"
    return f"{name}  {figures['utilisation'] * 100:3.0f}%".replace("$", r"\$")


class _Bars:
    """Draws the bars of rows. If there are very many, narrow ones are summed in columns."""

    def __init__(self, ax: Any, collections: Any, latency: int, many: int) -> None:
        self._ax = ax
        self._polygons: Callable[..., Any] = collections.PolyCollection
        self._latency = latency
        self._narrow = latency / _COLUMNS if many > _MOST_BARS else 0.0
        self.phases: set[str] = set()

    def draw(self, row: _Row, y: float, height: float, phase_of: Array, names: Sequence[str]) -> None:
        start = row.start.astype(float)
        wide = row.end - start
        phase = phase_of[row.operator]
        self.phases |= {names[i] for i in np.unique(phase)}
        narrow = wide < self._narrow
        if narrow.any():
            self._columns((start + wide / 2)[narrow], wide[narrow], phase[narrow], y, height, names)
        for i in np.unique(phase[~narrow]):
            chosen = ~narrow & (phase == i)
            left, right = start[chosen], row.end[chosen].astype(float)
            low, high = np.full(len(left), y), np.full(len(left), y + height)
            corners = np.stack([left, low, right, low, right, high, left, high], axis=1).reshape(-1, 4, 2)
            # The edge keeps very thin bars visible.
            bars = self._polygons(corners, facecolors=PHASES[names[i]], edgecolors="face", linewidths=0.2, zorder=3,
                                  rasterized=len(left) > 2_000)  # fmt: skip
            bars.set_gid(("tiles " if row.group == "CORES" else "transfers ") + names[i])
            self._ax.add_collection(bars, autolim=False)

    def _columns(self, at: Array, wide: Array, phase: Array, y: float, height: float, names: Sequence[str]) -> None:
        """Draws narrow bars as columns. A column has the colour of the phase that fills most of it,
        and is fainter if less of it is filled."""
        column = np.minimum((at / self._latency * _COLUMNS).astype(np.int64), _COLUMNS - 1)
        filled = np.bincount(column * len(names) + phase, np.maximum(wide / self._latency * _COLUMNS, 0.05 / _COLUMNS),
                             _COLUMNS * len(names)).reshape(_COLUMNS, len(names))  # fmt: skip
        colours = np.array([[int(PHASES[name][i : i + 2], 16) / 255 for i in (1, 3, 5)] for name in names])
        picture = np.zeros((1, _COLUMNS, 4))
        picture[0, :, :3] = colours[filled.argmax(axis=1)]
        total = filled.sum(axis=1)
        picture[0, :, 3] = np.where(total > 0, 0.3 + 0.7 * np.minimum(total, 1), 0)
        image = self._ax.imshow(picture, extent=(0, self._latency, y, y + height), aspect="auto", origin="lower",
                                interpolation="nearest", zorder=3)  # fmt: skip
        image.set_gid("columns")


def _highest_samples(samples: Columns, latency: int) -> tuple[Array, dict[str, Array]]:
    """Cycles and bytes by owner, up to the end of the step. If there are very many samples, only
    the highest of each column remains."""
    cycles = samples["cycle"].astype(np.int64)
    held = {owner: samples[f"{owner}_bytes"].astype(np.int64) for owner in OWNERS}
    if len(cycles) > 4 * _COLUMNS:
        total = np.sum(list(held.values()), axis=0)
        column = np.minimum(cycles * _COLUMNS // latency, _COLUMNS - 1)
        order = np.lexsort((-total, column))  # the highest of a column first
        chosen = order[np.unique(column[order], return_index=True)[1]]
        cycles = column[chosen] * latency // _COLUMNS
        held = {owner: value[chosen] for owner, value in held.items()}
    end = max(latency, int(cycles[-1]))
    return np.append(cycles, end), {owner: np.append(value, value[-1]) for owner, value in held.items()}


def _parts(energy: Mapping[str, float]) -> dict[str, float]:
    return {part: float(energy.get(f"{part}_pj", 0.0)) for part in PARTS}


def _round_ticks(to: float, count: int) -> list[float]:
    """Ticks at multiples of 1, 2 or 5 times a power of ten, about `count` of them."""
    if not to > 0:
        return [0.0]
    power = 10.0 ** math.floor(math.log10(to / count))
    step = next((k * power for k in (1, 2, 5) if to / (k * power) <= count), 10 * power)
    return [k * step for k in range(int(to / step * (1 + 1e-12)) + 1)]


def _cycles(value: float, step: float) -> str:
    """A number of cycles with enough digits to distinguish neighbouring ticks."""
    scale, prefix = next(((s, p) for s, p in ((1e9, "G"), (1e6, "M"), (1e3, "k")) if value >= s), (1.0, ""))
    decimals = max(0, min(9, math.ceil(-math.log10(step / scale) - 1e-9)))
    text = f"{value / scale:.{decimals}f}"
    return (text.rstrip("0").rstrip(".") if decimals else text) + ("\u202f" + prefix if prefix else "")
