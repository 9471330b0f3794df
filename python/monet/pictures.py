"""HTML with SVG that notebooks show for networks, chips and results.

Text from files is escaped, and every picture is self-contained XML."""

from __future__ import annotations

import html
import itertools
import math
import re
import tempfile
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from monet import units

if TYPE_CHECKING:
    from monet.chips import Chip
    from monet.model import Network
    from monet.results import Result

Operator = tuple[str, str, Collection[int]]  # name, type, indices of the operators that it reads
Wire = tuple[list[int], int, str]  # cores, bits per cycle, kind

_TEXT = "#16202b"
_MUTED = "#5c6773"
_EDGE = "#7a8794"
_MOST_NODES = 200
_LARGEST_PAGE = 8 << 20  # maximum bytes of a report in a cell
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

# Colours by kind of core, as in web/src/report.css.
_CORES = {"array": "#cfe6f5", "vector": "#cdeadf", "pooling": "#f6d9b8", "offchip": "#f3d3e2"}
_PRODUCTS = re.compile(r"Conv|Gemm|MatMul|Einsum|LSTM|GRU|RNN|Attention")
_SHARED = re.compile(r"Norm|Softmax|Pool|Reduce|LRN")  # a result depends on many elements


def network_html(network: Network) -> str:
    """A network as HTML: operators, parameters, inputs, outputs and the graph."""
    facts = [("operators", f"{network.operators:,}"), ("parameters", f"{network.parameters:,}")]
    facts += [("input", _tensor_text(tensor)) for tensor in network.inputs]
    facts += [("output", _tensor_text(tensor)) for tensor in network.outputs]
    picture = network_svg(network._handle.graph())
    return (
        f"<div>{_heading(Path(network.path).name)}{_table(facts)}"
        f'<div style="max-height:560px;overflow:auto;background:#fff;border:1px solid #e3e6ea">{picture}</div></div>'
    )


def chip_html(chip: Chip) -> str:
    """A chip as HTML: the block diagram, and area and clock if the files have them."""
    compute = [core for core in chip.cores if core["kind"] != "offchip"]
    facts = [("compute cores", str(len(compute))), ("lanes", f"{sum(core['lanes'] for core in compute):,}")]
    if chip.frequency_hz > 0:
        facts.append(("clock", units.si(chip.frequency_hz, "Hz")))
    if chip.area_mm2 > 0:
        facts.append(("area", f"{chip.area_mm2:.3g} mm²"))
    picture = chip_svg(chip.cores, chip._handle.links())
    return f'<div>{_heading(chip.name)}{_table(facts)}<div style="overflow:auto;background:#fff">{picture}</div></div>'


def result_html(result: Result) -> str:
    """A result as HTML: the figures of each phase, and the report, folded, unless it is too
    large."""
    figures = result._figures
    inference = figures.get("inference")
    seconds = figures.get("latency_seconds")
    facts = [
        ("latency", f"{figures['latency_cycles']:,} cycles" + (f", {units.seconds(seconds)}" if seconds else "")),
        ("energy", units.energy(figures["energy_pj"])),
        ("peak memory", units.size(figures["peak_memory_bytes"])),
        ("MACs", units.si(figures["macs"]["total"])),
    ]
    head = ("", "cycles", "critical path (cycles)", "energy", "MACs", "peak memory")
    rows = [(phase["phase"], *_row_of(phase, phase["macs"])) for phase in figures["phases"]]
    rows.append(("total", *_row_of(figures, figures["macs"]["total"])))
    if inference is not None:
        rows.append(("inference alone", *_row_of(inference, inference["macs"]["total"])))
    return (
        f"<div>{_heading(result.name)}{_table(facts)}{_figure_table(head, rows)}"
        f"{_figure_table(_LAYER_HEAD, _layer_rows(result))}{_report_html(result)}</div>"
    )


_LAYERS_SHOWN = 10
_LAYER_HEAD = ("layer", "phase", "critical path (cycles)", "share", "span (cycles)", "energy", "off-chip")


def _layer_rows(result: Result) -> list[tuple[str, ...]]:
    """The layers with the longest critical path, and one row for all others, as in the terminal."""
    layers = result.layers

    def row(name: str, phase: str, span: str, chosen: Any) -> tuple[str, ...]:
        cycles = int(layers["critical_path_cycles"][chosen].sum())
        share = f"{100 * cycles / result.latency_cycles:.1f} %" if result.latency_cycles else ""
        return (name, phase, f"{cycles:,}", share, span, units.energy(float(layers["energy_pj"][chosen].sum())),
                units.size(int(layers["offchip_bytes"][chosen].sum())))  # fmt: skip

    shown = min(layers.rows, _LAYERS_SHOWN)
    rows = [
        row(layers["name"][i], layers["phase"][i], f"{layers['span_cycles'][i]:,}", slice(i, i + 1)) for i in range(shown)
    ]
    if layers.rows > shown:
        rows.append(row(f"{layers.rows - shown} more", "", "", slice(shown, None)))
    return rows


def _figure_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """An HTML table with names on the left and figures on the right."""
    heads = "".join(f'<th style="text-align:right">{name}</th>' for name in head)
    body = "".join(
        f'<tr><th style="text-align:left">{html.escape(_clean(row[0]))}</th>' + "".join(map(_number, row[1:])) + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"


def _row_of(figures: dict[str, Any], macs: int) -> tuple[str, ...]:
    return (
        f"{figures['latency_cycles']:,}",
        f"{figures.get('critical_path_cycles', figures['latency_cycles']):,}",  # a whole step's is its latency
        units.energy(figures["energy_pj"]),
        units.si(macs),
        units.size(figures["peak_memory_bytes"]),
    )


def _report_html(result: Result) -> str:
    if len(result._json) > _LARGEST_PAGE:  # the page includes the JSON
        return "<p>The report is too large for a cell: <code>result.report(folder)</code> writes it.</p>"
    with tempfile.TemporaryDirectory() as folder:
        page = Path(result.report(folder)).read_text(encoding="utf-8")
    text = page.replace("&", "&amp;").replace("'", "&#39;")
    if len(text) > _LARGEST_PAGE:
        return "<p>The report is too large for a cell: <code>result.report(folder)</code> writes it.</p>"
    return (
        "<details><summary>report</summary><iframe sandbox='allow-scripts' loading='lazy' "
        f"style='width:100%;height:720px;border:1px solid #e3e6ea' srcdoc='{text}'></iframe></details>"
    )


def _heading(text: str) -> str:
    return f"<b>{html.escape(_clean(text))}</b>"


def _table(facts: Iterable[tuple[str, str]]) -> str:
    rows = "".join(
        f'<tr><th style="text-align:left">{html.escape(name)}</th><td style="text-align:left">{html.escape(_clean(value))}</td></tr>'
        for name, value in facts
    )
    return f"<table>{rows}</table>"


def _number(text: str) -> str:
    return f'<td style="text-align:right">{html.escape(_clean(text))}</td>'


def _tensor_text(tensor: tuple[str, tuple[int, ...], str]) -> str:
    name, shape, kind = tensor
    return f"{name}: {' x '.join(map(str, shape)) or 'scalar'} {kind}"


def _clean(text: str) -> str:
    """The text with characters that XML does not allow replaced."""
    return _NOT_XML.sub("\ufffd", text)


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _xml(text: str) -> str:
    return html.escape(_clean(text))


# --- A network ------------------------------------------------------------------------------------


class _Node(NamedTuple):
    members: list[int]  # operators, in order
    reads: list[int]  # nodes


def network_svg(graph: Sequence[Operator], most: int = _MOST_NODES) -> str:
    """The graph as SVG, with operators in rows by the longest path to them. If there are more than
    `most` operators, each chain becomes one box. If that is not enough, each run of consecutive
    operators does."""
    nodes = _collapsed(graph, most)
    placed = _placed([node.reads for node in nodes])
    wide, tall, row = 132, 22, 44
    left = min((x - (wide / 2 if i < len(nodes) else 0) for i, (x, _) in enumerate(placed.at)), default=0.0) - 10
    right = max((x + (wide / 2 if i < len(nodes) else 0) for i, (x, _) in enumerate(placed.at)), default=0.0) + 10
    height = max((level for _, level in placed.at), default=0) * row + tall + 20

    def centre(i: int) -> tuple[float, float]:
        x, level = placed.at[i]
        return x - left, level * row + 10

    lines = []
    for path in placed.paths:
        x, y = centre(path[0])
        text = f"M{x:.0f} {y + tall:.0f}"
        for end in path[1:]:
            below, top = centre(end)
            middle = (y + tall + top) / 2
            text += f"C{x:.0f} {middle:.0f} {below:.0f} {middle:.0f} {below:.0f} {top:.0f}"
            if end >= len(nodes):  # the edge passes this row
                text += f"V{top + tall:.0f}"
            x, y = below, top
        lines.append(f'<path d="{text}"/>')
    boxes = []
    for i, node in enumerate(nodes):
        x, y = centre(i)
        types = [graph[member][1] for member in node.members]
        names = [graph[member][0] for member in node.members]
        title = _short(", ".join(f"{name} ({kind})" for name, kind in zip(names, types)), 600)
        boxes.append(
            f'<g><title>{_xml(title)}</title><rect x="{x - wide / 2:.0f}" y="{y:.0f}" width="{wide}" height="{tall}" rx="4" '
            f'fill="{_fill(types)}" stroke="#666"/><text x="{x:.0f}" y="{y + 15:.0f}" text-anchor="middle">'
            f"{_xml(_short(_types_text(types), 21))}</text></g>"
        )
    return _svg(right - left, height, f'<g fill="none" stroke="{_EDGE}" stroke-width="1.2">{"".join(lines)}</g>' + "".join(boxes))


def _types_text(types: Sequence[str]) -> str:
    """The types of a box: all of them if they are short, else the main type and the number of
    others."""
    text = ", ".join(types)
    if len(text) <= 21:
        return text
    chief = next((kind for kind in types if _PRODUCTS.search(kind)), Counter(types).most_common(1)[0][0])
    return chief if len(types) == 1 else f"{chief} + {len(types) - 1}"


def _fill(types: Sequence[str]) -> str:
    if any(_PRODUCTS.search(kind) for kind in types):
        return "#cfe6f5"
    return "#cdeadf" if any(_SHARED.search(kind) for kind in types) else "#ffffff"


def _collapsed(graph: Sequence[Operator], most: int) -> list[_Node]:
    count = len(graph)
    group = list(range(count))
    if count > most:
        readers: list[list[int]] = [[] for _ in graph]
        for i, (_, _, inputs) in enumerate(graph):
            for source in set(inputs):
                readers[source].append(i)
        lone = {i for i, (_, _, inputs) in enumerate(graph) if not inputs and len(readers[i]) == 1}
        for i, (_, _, inputs) in enumerate(graph):
            sources = set(inputs) - lone  # lone sources, mostly of weights, join their readers
            if len(sources) == 1 and len(readers[source := sources.pop()]) == 1 and source < i:
                group[i] = group[source]
        for i in lone:
            group[i] = group[readers[i][0]]
    order = sorted(set(group))
    if len(order) > most:  # runs of consecutive operators; edges still point forwards
        size = math.ceil(count / most)
        group = [i // size for i in range(count)]
        order = sorted(set(group))
    number = {key: i for i, key in enumerate(order)}
    members: list[list[int]] = [[] for _ in order]
    reads: list[list[int]] = [[] for _ in order]
    for i, (_, _, inputs) in enumerate(graph):
        own = number[group[i]]
        members[own].append(i)
        for source in sorted(inputs):
            other = number[group[source]]
            if other != own and other not in reads[own]:
                reads[own].append(other)
    return [_Node(member, read) for member, read in zip(members, reads)]


class _Placed(NamedTuple):
    at: list[tuple[float, int]]  # centre and row of nodes, then of points where edges pass rows
    paths: list[list[int]]  # the points of edges, from the upper end


def _placed(reads: list[list[int]]) -> _Placed:
    """Places nodes in rows by depth, and within rows so that edges stay short (after Sugiyama). An
    edge over several rows has a point in each, which the edges of one source share."""
    count = len(reads)
    depth = [0] * count
    for node in range(count):  # in topological order
        depth[node] = max((depth[source] + 1 for source in reads[node] if source < node), default=0)
    first_reader: dict[int, int] = {}
    for node, sources in enumerate(reads):
        for source in sources:
            first_reader[source] = min(first_reader.get(source, depth[node]), depth[node])
    for node, sources in enumerate(reads):
        if not sources:  # one row above its first reader: transposed weights
            depth[node] = max(first_reader.get(node, 1) - 1, 0)
    row_of = list(depth)
    above: list[list[int]] = [[] for _ in range(count)]
    points: dict[tuple[int, int], int] = {}
    paths = []
    for node in range(count):
        for source in reads[node]:
            if depth[source] >= depth[node]:
                continue
            path = [source]
            for between in range(depth[source] + 1, depth[node]):
                point = points.setdefault((source, between), len(row_of))
                if point == len(row_of):
                    row_of.append(between)
                    above.append([path[-1]])
                path.append(point)
            above[node].append(path[-1])
            paths.append([*path, node])
    below: list[list[int]] = [[] for _ in row_of]
    for node, sources in enumerate(above):
        for source in sources:
            below[source].append(node)
    rows: list[list[int]] = [[] for _ in range(max(row_of, default=-1) + 1)]
    for node, depth_of in enumerate(row_of):
        rows[depth_of].append(node)
    x = [0.0] * len(row_of)
    wide = [152.0 if node < count else 26.0 for node in range(len(row_of))]
    for level in rows:
        _pack(level, [float(i) for i in range(len(level))], x, wide)
    for turn in range(8):
        down = turn % 2 == 0
        near = above if down else below
        for level in rows if down else reversed(rows):
            wanted = [_mean([x[other] for other in near[node]], x[node]) for node in level]
            _pack(level, wanted, x, wide)
    return _Placed(list(zip(x, row_of)), paths)


def _mean(values: list[float], other: float) -> float:
    return sum(values) / len(values) if values else other


def _pack(level: list[int], wanted: list[float], x: list[float], wide: list[float]) -> None:
    """Sets the centres `x` of a row's nodes, in the order of their `wanted` centres and as near to
    them as possible. Touching nodes form blocks, each placed at its least sum of squares."""
    order = sorted(range(len(level)), key=lambda i: (wanted[i], i))
    level[:] = [level[i] for i in order]
    blocks: list[tuple[float, float, int]] = []  # sum of wanted left ends, width, number of nodes
    for node, i in zip(level, order):
        block = (wanted[i] - wide[node] / 2, wide[node], 1)
        while blocks and blocks[-1][0] / blocks[-1][2] + blocks[-1][1] > block[0] / block[2]:
            total, width, nodes = blocks.pop()
            block = (total + block[0] - width * block[2], width + block[1], nodes + block[2])
        blocks.append(block)
    rest = iter(level)
    for total, _, nodes in blocks:
        end = total / nodes
        for node in itertools.islice(rest, nodes):
            x[node] = end + wide[node] / 2
            end += wide[node]


# --- A chip ---------------------------------------------------------------------------------------

_BOX = 164  # width
_ROW_GAP = 34
_TRACKS = ("#0072b2", "#d55e00", "#00865f", "#b04f8c", "#997700", "#4aa3d8", "#332288", "#7b8794")


class _Track(NamedTuple):
    """Cores on one drawn line: a bus, or links that differ only in their ends."""

    cores: list[int]
    text: str


def chip_svg(cores: Sequence[dict[str, Any]], links: Sequence[Wire]) -> str:
    """The chip as SVG: arrays in a square with other compute cores at the right, and the off-chip
    memory below. Cores list memories from the outermost to the array. Links between neighbours are
    lines. Buses, and links from one core to many, are tracks below the cores."""
    joined = _joined(links)
    seats = max(
        (_seats(cores, snake) for snake in (False, True)),
        key=lambda seats: sum(_neighbours(seats, *pair) for pair in joined),
    )
    direct, tracks = _wiring(cores, joined, links, seats)
    hidden = len(tracks) - len(_TRACKS)
    tracks = tracks[: len(_TRACKS)]
    gap = 46 + 9 * len(tracks)
    tall = [_core_height(core) for core in cores]
    box: dict[int, tuple[float, float]] = {}
    tops = [12.0]
    for row in range(max((row for row, _ in seats.values()), default=-1) + 1):
        highest = max((tall[core] for core, seat in seats.items() if seat[0] == row), default=0)
        tops.append(tops[-1] + highest + _ROW_GAP)
    for core, (row, column) in seats.items():
        box[core] = (12 + column * (_BOX + gap), tops[row])
    columns = max((column for _, column in seats.values()), default=0) + 1
    width = 12 + columns * (_BOX + gap)
    bars = tops[-1] + 4
    bottom = bars + 24 * len(tracks)
    offchip = [i for i in range(len(cores)) if i not in seats]
    for core in offchip:
        box[core] = (12.0, bottom)
        bottom += tall[core] + 14
    bottom += 14 if links else 0
    text = "".join(_line_svg(box, tall, seats, pair, what) for pair, what in direct)
    drawn = [_track_svg(track, i, bars + 14 + 24 * i, box, tall, seats) for i, track in enumerate(tracks)]
    text += "".join(lines for lines, _ in drawn) + "".join(label for _, label in drawn)
    text += "".join(_core_svg(i, core, *box[i], tall[i]) for i, core in enumerate(cores))
    if links:
        note = "widths of links in bits (b) per cycle" + (f"; {hidden} more groups of links" if hidden > 0 else "")
        text += f'<text x="12" y="{bottom - 8:.0f}" font-size="10" fill="{_MUTED}">{note}</text>'
    return _svg(width, bottom, text)


def _seats(cores: Sequence[dict[str, Any]], snake: bool) -> dict[int, tuple[int, int]]:
    """Row and column of each compute core. `snake` reverses every other row, as rings and chains
    need."""
    arrays = [i for i, core in enumerate(cores) if core["kind"] == "array"]
    others = [i for i, core in enumerate(cores) if core["kind"] not in ("array", "offchip")]
    columns = max(1, math.ceil(math.sqrt(len(arrays))))
    rows = max(1, math.ceil(len(arrays) / columns))
    seats = {}
    for i, core in enumerate(arrays):
        row, column = divmod(i, columns)
        seats[core] = (row, columns - 1 - column if snake and row % 2 == 1 else column)
    start = columns if arrays else 0
    for i, core in enumerate(others):
        column, row = divmod(i, rows)
        seats[core] = (row, start + column)
    return seats


def _joined(links: Sequence[Wire]) -> dict[tuple[int, int], str]:
    """The text of the links between each pair of cores, with both directions together."""
    widths: dict[tuple[int, int], dict[int, list[int]]] = {}  # by pair, then by a link's first core
    for members, bits, _ in links:
        if len(members) == 2:
            ways = widths.setdefault((min(members), max(members)), {})
            ways.setdefault(members[0], []).append(bits)
    texts = {}
    for pair, ways in widths.items():
        both = [
            " + ".join(f"{many} x {bits:,} b" if many > 1 else f"{bits:,} b" for bits, many in Counter(ways[first]).items())
            for first in sorted(ways)
        ]
        texts[pair] = " / ".join(dict.fromkeys(both))  # once if both directions are equal
    return texts


def _neighbours(seats: dict[int, tuple[int, int]], a: int, b: int) -> bool:
    if a not in seats or b not in seats:
        return False
    (row_a, column_a), (row_b, column_b) = seats[a], seats[b]
    return abs(row_a - row_b) + abs(column_a - column_b) == 1


def _wiring(
    cores: Sequence[dict[str, Any]],
    joined: dict[tuple[int, int], str],
    links: Sequence[Wire],
    seats: dict[int, tuple[int, int]],
) -> tuple[list[tuple[tuple[int, int], str]], list[_Track]]:
    """Lines for links between neighbours, and tracks for all other links."""
    left = dict(joined)
    tracks = []

    def star(hub: int, text: str) -> None:
        pairs = [pair for pair in left if hub in pair and left[pair] == text]
        others = [a + b - hub for a, b in pairs]
        for pair in pairs:
            del left[pair]
        tracks.append(_Track([hub, *others], f"{hub} to {_numbers(others)}: {text} each" if len(others) > 1
                             else f"{hub} to {others[0]}: {text}"))  # fmt: skip

    for hub, core in enumerate(cores):  # hubs that serve many cores
        if core["kind"] != "array":
            texts = Counter(text for pair, text in left.items() if hub in pair)
            for text in [text for text, many in texts.items() if many > 2]:
                star(hub, text)
    direct = [(pair, text) for pair, text in left.items() if _neighbours(seats, *pair)]
    for text in sorted(set(left.values())):  # links between all pairs of a set
        pairs = [pair for pair, own in left.items() if own == text]
        members = sorted({core for pair in pairs for core in pair})
        if len(members) > 2 and len(pairs) == len(members) * (len(members) - 1) // 2:
            direct = [(pair, what) for pair, what in direct if pair not in pairs]
            for pair in pairs:
                del left[pair]
            tracks.append(_Track(members, f"each two of {_numbers(members)}: {text}"))
    for pair, _ in direct:
        del left[pair]
    while left:
        hubs = Counter((core, text) for pair, text in left.items() for core in pair)
        hub, text = max(hubs, key=lambda key: (hubs[key], cores[key[0]]["kind"] == "offchip", -key[0]))
        star(hub, text)
    tracks += [_Track(list(members), f"{kind} of {bits:,} b") for members, bits, kind in links if len(members) > 2]
    return direct, tracks


def _numbers(cores: Sequence[int]) -> str:
    cores = sorted(cores)
    if len(cores) > 2 and cores[-1] - cores[0] == len(cores) - 1:
        return f"{cores[0]}-{cores[-1]}"
    return ", ".join(map(str, cores))


def _core_height(core: dict[str, Any]) -> int:
    return 42 + 22 * len(core["memories"]) + (0 if core["kind"] == "offchip" else 22)


def _core_svg(number: int, core: dict[str, Any], x: float, y: float, tall: int) -> str:
    name = _xml(_short(f"{number} {core['name']}", 24))
    text = (
        f'<g><title>{_xml(core["name"])}</title>'
        f'<rect x="{x:.0f}" y="{y:.0f}" width="{_BOX}" height="{tall}" rx="6" fill="#fff" stroke="#666"/>'
        f'<text x="{x + 8:.0f}" y="{y + 16:.0f}" font-weight="bold">{name}</text>'
        f'<text x="{x + 8:.0f}" y="{y + 29:.0f}" fill="{_MUTED}" font-size="10">{_xml(core["kind"])}</text>'
    )
    rows = []
    for name, bits, many in reversed(core["memories"]):
        size = units.size(bits / 8) if bits >= 8 else f"{bits} b"
        rows.append((name, f"{many:,} x {size}" if many > 1 else size, "#f3f5f8"))
    if core["kind"] != "offchip":
        rows.append((f"{core['lanes']:,} lanes", "", _CORES.get(core["kind"], "#ffffff")))
    at = y + 36
    for name, detail, fill in rows:
        text += (
            f'<rect x="{x + 8:.0f}" y="{at:.0f}" width="{_BOX - 16}" height="18" rx="3" fill="{fill}" stroke="#aab2bb"/>'
            f'<text x="{x + 13:.0f}" y="{at + 13:.0f}" font-size="10">{_xml(_short(name, 23 - len(detail)))}</text>'
            f'<text x="{x + _BOX - 13:.0f}" y="{at + 13:.0f}" font-size="10" fill="{_MUTED}" text-anchor="end">'
            f"{_xml(detail)}</text>"
        )
        at += 22
    return text + "</g>"


_HALO = 'paint-order="stroke" stroke="#fff" stroke-width="3" stroke-linejoin="round"'
Boxes = dict[int, tuple[float, float]]  # left and top by core
Seats = dict[int, tuple[int, int]]


def _line_svg(box: Boxes, tall: Sequence[int], seats: Seats, pair: tuple[int, int], text: str) -> str:
    first, second = sorted(pair, key=lambda core: seats[core])
    (ax, ay), (bx, by) = box[first], box[second]
    if seats[first][0] == seats[second][0]:
        y = ay + 27
        path = f"M{ax + _BOX:.0f} {y:.0f}H{bx:.0f}"
        label = f'x="{ax + _BOX + 5:.0f}" y="{y - 4:.0f}"'
    else:
        x = ax + 30
        path = f"M{x:.0f} {ay + tall[first]:.0f}V{by:.0f}"
        label = f'x="{x + 6:.0f}" y="{(ay + tall[first] + by) / 2 + 4:.0f}"'
    return (
        f'<path d="{path}" stroke="{_EDGE}" stroke-width="2" fill="none"/>'
        f'<text {label} font-size="10" {_HALO}>{_xml(text)}</text>'
    )


def _track_svg(
    track: _Track, number: int, y: float, box: Boxes, tall: Sequence[int], seats: Seats
) -> tuple[str, str]:
    """A bar with a riser next to each column and a stub to each of its cores, and the label, which
    is drawn over all lines."""
    colour = _TRACKS[number % len(_TRACKS)]
    lines = ""
    dots = ""
    ends = []
    for column in sorted({seats[core][1] for core in track.cores if core in seats}):
        own = [core for core in track.cores if core in seats and seats[core][1] == column]
        x = box[own[0]][0] + _BOX + 40 + 9 * number
        ends.append(x)
        stubs = [(core, box[core][1] + 42 + (tall[core] - 48) * (number + 1) / (len(_TRACKS) + 1)) for core in own]
        lines += f"M{x:.0f} {min(at for _, at in stubs):.0f}V{y:.0f}"
        for core, at in stubs:
            lines += f"M{box[core][0] + _BOX:.0f} {at:.0f}H{x:.0f}"
            dots += f'<circle cx="{box[core][0] + _BOX:.0f}" cy="{at:.0f}" r="2.5"/>'
    for core in track.cores:
        if core not in seats:
            x = box[core][0] + 14 + 9 * number
            ends.append(x)
            lines += f"M{x:.0f} {box[core][1]:.0f}V{y:.0f}"
            dots += f'<circle cx="{x:.0f}" cy="{box[core][1]:.0f}" r="2.5"/>'
    left = min(ends)
    lines += f"M{left:.0f} {y:.0f}H{max(ends):.0f}"
    is_offchip = any(core not in seats for core in track.cores)
    place = f'x="{12 + 14 + 9 * len(_TRACKS):.0f}"' if is_offchip else f'x="{left - 6:.0f}" text-anchor="end"'
    label = f'<text {place} y="{y - 4 if is_offchip else y + 4:.0f}" font-size="10" {_HALO}>{_xml(track.text)}</text>'
    drawn = f'<path d="{lines}" stroke="{colour}" stroke-width="1.8" fill="none"/>{dots}'
    return f'<g fill="{colour}">{drawn}</g>', f'<g fill="{colour}">{label}</g>'


def _svg(width: float, height: float, inside: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} '
        f'{height:.0f}" font-family="system-ui, sans-serif" font-size="11" fill="{_TEXT}">{inside}</svg>'
    )
