"""Figures of results, and what objects look like in notebooks."""

from __future__ import annotations

import io
import re
import sys
import time
import xml.etree.ElementTree as xml
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import monet
import numpy as np
import pytest
from monet import pictures, plots

from test_package import chip_dict

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "data"


@pytest.fixture(scope="module")
def chip() -> monet.Chip:
    return monet.read_chip(DATA / "hardware" / "edge_tpu.yaml")


@pytest.fixture(scope="module")
def net() -> monet.Network:
    return monet.read_network(DATA / "workload" / "resnet8_16.onnx", batch=2)


@pytest.fixture(scope="module")
def result(net: monet.Network, chip: monet.Chip) -> monet.Result:
    return net.training_step(DATA / "training" / "adam.yaml").schedule(chip, mode="layer-by-layer")


@pytest.fixture(scope="module")
def fused(net: monet.Network) -> monet.Result:
    chip = monet.read_chip(DATA / "hardware" / "edge_tpu_22nm.yaml")
    return net.inference("bf16").schedule(chip, mode="fused")


@pytest.fixture(scope="module")
def leaking(net: monet.Network) -> monet.Result:
    chip = chip_dict()
    chip["cores"][0]["memories"]["sram"]["leakage_pj_per_cycle"] = 40
    return net.training_step().schedule(monet.read_chip(chip), mode="layer-by-layer")


@pytest.fixture
def pyplot() -> Any:
    """Without a display, and with no figure left open."""
    pytest.importorskip("matplotlib").use("Agg")
    module = pytest.importorskip("matplotlib.pyplot")
    yield module
    module.close("all")


def patches(ax: Any, kind: str) -> dict[str, Any]:
    """Collections by phase."""
    found: dict[str, list[Any]] = {}
    for collection in ax.collections:
        if str(collection.get_gid()).startswith(kind + " "):
            found.setdefault(collection.get_gid().removeprefix(kind + " "), []).append(collection)
    return found


def count(collections: list[Any]) -> int:
    return sum(len(collection.get_paths()) for collection in collections)


def png(ax: Any) -> bytes:
    buffer = io.BytesIO()
    ax.figure.savefig(buffer, format="png")
    assert ax.figure.get_size_inches().max() < 20
    return buffer.getvalue()


# --- Figures ------------------------------------------------------------------------------------


def test_timeline_has_every_tile_in_its_phase(result: monet.Result, pyplot: Any) -> None:
    ax = result.plot.timeline()
    drawn = {phase: count(bars) for phase, bars in patches(ax, "tiles").items()}
    phases = np.array([layer["phase"] for layer in result.to_dict()["layers"]], dtype=object)[result.tiles["operator"]]
    assert drawn == {phase: int((phases == phase).sum()) for phase in np.unique(phases)}
    assert sum(drawn.values()) == result.tiles.rows
    cycles = 0.0
    for phase, bars in patches(ax, "tiles").items():
        for path in (path for collection in bars for path in collection.get_paths()):
            cycles += np.ptp(path.vertices[:, 0])
        assert np.allclose(bars[0].get_facecolor()[0][:3], rgb(plots.PHASES[phase]))
    assert cycles == sum(result.tiles["end_cycle"] - result.tiles["start_cycle"])
    assert ax.get_xlim() == (0, result.latency_cycles)
    assert len(png(ax)) > 10_000


def rgb(colour: str) -> list[float]:
    return [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]


def test_timeline_has_the_transfers_of_the_busiest_links(result: monet.Result, pyplot: Any) -> None:
    figures = result.to_dict()
    transfers = figures["timeline"]["transfers"]
    ports = 0
    offchip = figures["cores"][-1]["id"]
    for row in transfers:
        ports += (row[6] == offchip) + (row[7] == offchip or (len(row) > 9 and offchip in row[9]))
    everything = ports + sum(len(row[1]) for row in transfers)
    assert sum(map(count, patches(result.plot.timeline(lanes=99), "transfers").values())) == everything
    assert sum(map(count, patches(result.plot.timeline(lanes=0), "transfers").values())) == ports
    labels = [label.get_text() for label in result.plot.timeline(lanes=1).get_yticklabels()]
    busiest = max(figures["links"], key=lambda link: link["busy_cycles"])
    assert sum(label.startswith(busiest["name"]) for label in labels) == 1
    assert len(labels) == sum(core["tiles"] > 0 for core in figures["cores"]) + 1 + len(figures["ports"])


def stacked(ax: Any) -> np.ndarray[Any, Any]:
    """Highest point of each owner's area."""
    return np.array([area.get_paths()[0].vertices[:, 1].max() for area in ax.collections])


@pytest.mark.parametrize("which", ["result", "fused"])
def test_memory_peaks_at_the_peak(which: str, request: pytest.FixtureRequest, pyplot: Any) -> None:
    result = request.getfixturevalue(which)
    ax = result.plot.memory()
    assert stacked(ax).max() == result.peak_memory_bytes
    peak = ax.collections[-1].get_paths()[0].vertices
    assert (result.memory.get("peak_cycle"), result.peak_memory_bytes) in {tuple(point) for point in peak}
    assert len(png(ax)) > 8_000


@pytest.mark.parametrize("which", ["result", "fused", "leaking"])
def test_energy_adds_up(which: str, request: pytest.FixtureRequest, pyplot: Any) -> None:
    result = request.getfixturevalue(which)
    ax = result.plot.energy()
    names = [label.get_text() for label in ax.get_yticklabels()]
    by_row = dict.fromkeys(range(len(names)), 0.0)
    by_part = {}
    for bars in ax.containers:
        part = bars.get_label().rsplit(" ", 1)[0]
        own = [bar.get_width() for bar, name in zip(bars, names) if name != "inference alone"]
        by_part[part] = sum(own)
        for i, bar in enumerate(bars):
            by_row[i] += bar.get_width()
    own_rows = [value for (i, value) in by_row.items() if names[i] != "inference alone"]
    assert sum(own_rows) == pytest.approx(result.energy_pj, rel=1e-12)
    assert by_part["off-chip"] == pytest.approx(result.energy["offchip_pj"], rel=1e-12)
    assert (result.energy["leakage_pj"] > 0) == (which == "leaking")
    assert ("leakage" in by_part) == (result.energy["leakage_pj"] > 0)
    assert ("inference alone" in names) == ("inference" in result.to_dict())
    by_type = result.plot.energy(by="type")
    whole = sum(bar.get_width() for bars in by_type.containers for bar in bars)
    assert whole == pytest.approx(result.energy_pj - result.energy["leakage_pj"], rel=1e-12)
    assert len(png(ax)) > 8_000


def test_roofline_has_the_layers_with_macs(result: monet.Result, pyplot: Any) -> None:
    ax = result.plot.roofline()
    layers = result.layers
    with_macs = layers["macs"] > 0
    points = [point for group in patches(ax, "operators").values() for group in group for point in group.get_offsets()]
    assert len(points) == with_macs.sum()
    moved = with_macs & (layers["offchip_bytes"] > 0)
    expected = np.sort(layers["macs"][moved] / layers["offchip_bytes"][moved])
    drawn = np.sort([point[0] for point in points])
    assert np.allclose(drawn[: len(expected)], expected)
    rates = layers["macs"][with_macs] / layers["span_cycles"][with_macs]
    assert np.allclose(np.sort([point[1] for point in points]), np.sort(rates))
    roof = max(line.get_ydata().max() for line in ax.lines)
    assert roof == 4 * 256  # the four arrays' lanes: no vector lanes, no pooling
    assert rates.max() <= roof
    slope = ax.lines[0].get_xydata()
    assert slope[0][1] / slope[0][0] == pytest.approx(8)  # bytes a cycle of a 64-bit port
    assert len(png(ax)) > 10_000


def test_roofs_of_arrays_in_memory(net: monet.Network, pyplot: Any) -> None:
    chip = monet.read_chip(DATA / "hardware" / "imc_digital.yaml")
    result = monet.read_network(DATA / "workload" / "ds_cnn.onnx").inference("int8").schedule(chip)
    ax = result.plot.roofline()
    roof = max(line.get_ydata().max() for line in ax.lines)
    assert roof == 2 * 16384 / 8  # eight cycles a product
    busy = [core for core in result.to_dict()["cores"] if core["kind"] == "array"]
    done = sum(core["mac_utilisation"] for core in busy) * result.latency_cycles * roof / len(busy)
    assert done == pytest.approx(result.macs["total"])


def test_figures_go_into_given_axes(result: monet.Result, pyplot: Any) -> None:
    figure, axes = pyplot.subplots(2, 2)
    draw = (result.plot.timeline, result.plot.memory, result.plot.energy, result.plot.roofline)
    for method, ax in zip(draw, axes.flat):
        assert method(ax) is ax
    assert pyplot.get_fignums() == [figure.number]


class Made:
    """A result of made-up tiles: the number asked for."""

    def __init__(self, tiles: int, cores: int = 4, latency: int = 10_000_000) -> None:
        random = np.random.default_rng(1)
        core = np.arange(tiles) % cores
        self.name = "made up: $x_1$ & <b>"
        start = np.sort(random.integers(0, latency * 9 // 10, tiles))
        self.tiles = monet.Columns({"core": core.astype(np.uint32), "operator": np.arange(tiles, dtype=np.uint32) % 2,
                                    "start_cycle": start, "end_cycle": start + 5})  # fmt: skip
        phases = np.array(["forward", "backward"], dtype=object)
        numbers = np.zeros(2, np.int64)
        self.layers = monet.Columns({"phase": phases, "operator": np.arange(2), "macs": numbers, "span_cycles": numbers,
                                     "offchip_bytes": numbers})  # fmt: skip
        cycles = np.sort(random.choice(latency, tiles, replace=False)) if tiles else np.zeros(0, np.int64)
        held = {f"{owner}_bytes": random.integers(0, 1 << 20, tiles) for owner in plots.OWNERS}
        self.memory_over_time = monet.Columns({"cycle": cycles, **held})
        peak = int(sum(held.values()).max()) if tiles else 0
        self.energy_pj = 0.0
        self._figures: dict[str, Any] = {
            "latency_cycles": latency if tiles else 0, "energy_pj": 0.0, "peak_memory_bytes": peak,
            "memory": {"peak_cycle": 0}, "phases": [], "energy": {}, "layers": [], "ports": [], "links": [],
            "cores": [{"id": i, "name": "c", "kind": "array", "utilisation": 0.5} for i in range(cores)],
            "hardware": {"cores": []},
        }  # fmt: skip

    @property
    def plot(self) -> plots.Plots:
        return plots.Plots(self)  # type: ignore[arg-type]


def test_a_million_tiles_take_seconds(tmp_path: Path, pyplot: Any) -> None:
    made = Made(1_000_000)
    begin = time.process_time()
    ax = made.plot.timeline()
    ax.figure.savefig(tmp_path / "timeline.pdf")
    memory = made.plot.memory()
    memory.figure.savefig(tmp_path / "memory.pdf")
    assert time.process_time() - begin < 10  # 2.5 s alone
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) < 2 << 20
    assert stacked(memory).max() == made._figures["peak_memory_bytes"]
    pictures = [image.get_array() for image in ax.images if image.get_gid() == "columns"]
    assert len(pictures) == 4
    filled = (np.concatenate(pictures)[:, : 1_750, 3] - 0.3) / 0.7  # of columns within the nine tenths
    expected = 1_000_000 / 4 * 5 / 9_000_000
    assert filled.mean() == pytest.approx(expected, rel=0.02)


def test_summed_tiles_have_the_phase_that_fills_most(pyplot: Any) -> None:
    made = Made(30_000, cores=1)
    ax = made.plot.timeline()
    assert not patches(ax, "tiles")  # all are narrower than a column
    picture = ax.images[0].get_array()[0]
    colours = {tuple(np.round(column[:3], 3)) for column in picture if column[3] > 0}
    assert colours == {tuple(np.round(rgb(plots.PHASES[phase]), 3)) for phase in ("forward", "backward")}
    assert (picture[1_900:, 3] == 0).all()


def test_nothing_is_drawn_of_empty_results(pyplot: Any) -> None:
    empty = Made(0)
    for ax in (empty.plot.timeline(), empty.plot.memory(), empty.plot.energy(), empty.plot.roofline()):
        assert len(ax.texts) == 1
        assert len(png(ax)) > 1_000


@pytest.mark.parametrize(
    ("method", "arguments", "error"),
    [("energy", {"by": "colour"}, ValueError), ("energy", {"by": 3}, TypeError), ("timeline", {"lanes": -1}, ValueError),
     ("timeline", {"lanes": 1.5}, TypeError), ("memory", {"ax": 3}, TypeError), ("roofline", {"ax": []}, TypeError)],
)  # fmt: skip
def test_wrong_arguments_of_plots_are_named(
    method: str, arguments: dict[str, Any], error: type[Exception], result: monet.Result, pyplot: Any
) -> None:
    with pytest.raises(error, match="^" + next(iter(arguments))):
        getattr(result.plot, method)(**arguments)


def test_without_matplotlib_its_name_is_told(result: monet.Result, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match="pip install matplotlib"):
        _ = result.plot


# --- Notebooks ----------------------------------------------------------------------------------

SVG = "{http://www.w3.org/2000/svg}"


def shown(thing: Any) -> tuple[xml.Element, str]:
    """What a notebook shows, as a tree: pictures are XML, and so is what is around them."""
    text = thing._repr_html_()
    return xml.fromstring(text), text


def boxes(picture: xml.Element) -> list[tuple[float, float, float, float]]:
    return [tuple(float(box.get(key, "")) for key in ("x", "y", "width", "height")) for box in picture.iter(SVG + "rect")]  # type: ignore[misc]


def are_disjoint(a: tuple[float, ...], b: tuple[float, ...]) -> bool:
    return a[0] + a[2] <= b[0] or b[0] + b[2] <= a[0] or a[1] + a[3] <= b[1] or b[1] + b[3] <= a[1]


def test_a_network_shows_its_graph(net: monet.Network) -> None:
    tree, text = shown(net)
    drawn = boxes(tree)
    assert len(drawn) == net.operators
    assert all(are_disjoint(a, b) for i, a in enumerate(drawn) for b in drawn[:i])
    graph = net._handle.graph()
    assert len(list(tree.iter(SVG + "path"))) == sum(len(inputs) for _, _, inputs in graph)
    titles = [title.text for title in tree.iter(SVG + "title")]
    assert titles == [f"{name} ({kind})" for name, kind, _ in graph]
    by_title = dict(zip((name for name, _, _ in graph), drawn))
    for name, _, inputs in graph:  # downwards
        assert all(by_title[graph[source][0]][1] < by_title[name][1] for source in inputs)
    assert "input: 2 x 3 x 16 x 16 fp32" in text


@pytest.mark.parametrize("file", ["gpt2", "resnet50", "bert_large"])
def test_large_networks_are_collapsed(file: str) -> None:
    network = monet.read_network(DATA / "workload" / f"{file}.onnx", batch=1)
    begin = time.process_time()
    tree, text = shown(network)
    assert time.process_time() - begin < 2
    assert len(boxes(tree)) <= 200
    assert len(text) < 200_000
    named = sum(len(re.findall(r"\(\w+\)(?=, |$)", title.text or "")) for title in tree.iter(SVG + "title"))
    assert named > network.operators * 0.9  # titles have their limit


@pytest.mark.parametrize("count", [0, 1, 199, 5_000])
def test_any_graph_has_a_picture(count: int) -> None:
    random = np.random.default_rng(count)
    graph = [(f"op {i}", "Add", {int(j) for j in random.integers(0, i, 2)} if i else set()) for i in range(count)]
    begin = time.process_time()
    tree = xml.fromstring(pictures.network_svg(graph))
    assert time.process_time() - begin < 5
    drawn = boxes(tree)
    assert len(drawn) == (count if count <= 200 else 200)
    assert all(are_disjoint(a, b) for i, a in enumerate(drawn) for b in drawn[:i])
    width, height = (float(tree.get(key, "")) for key in ("width", "height"))
    assert all(0 <= x and x + wide <= width and 0 <= y and y + tall <= height for x, y, wide, tall in drawn)


def test_chains_are_one_box_and_keep_their_order() -> None:
    chain = [("a", "Conv", [])] + [(f"r{i}", "Relu", [i]) for i in range(300)]
    tree = xml.fromstring(pictures.network_svg(chain))
    assert len(boxes(tree)) == 1
    assert [text.text for text in tree.iter(SVG + "text")] == ["Conv + 300"]


@pytest.mark.parametrize("file", sorted((DATA / "hardware").glob("*.yaml")), ids=lambda file: file.stem)
def test_a_chip_shows_cores_memories_and_links(file: Path) -> None:
    chip = monet.read_chip(file)
    tree, text = shown(chip)
    memories = sum(len(core["memories"]) + (core["kind"] != "offchip") for core in chip.cores)
    drawn = boxes(tree)
    assert len(drawn) == len(chip.cores) + memories
    cores = [box for box in drawn if box[2] > 150]
    assert len(cores) == len(chip.cores)
    assert all(are_disjoint(a, b) for i, a in enumerate(cores) for b in cores[:i])
    words = " ".join(label.text or "" for label in tree.iter(SVG + "text"))
    for members, bits, kind in chip._handle.links():
        assert f"{bits:,} b" in words
        assert len(members) == 2 or f"{kind} of {bits:,} b" in words
    width, height = (float(next(tree.iter(SVG + "svg")).get(key, "")) for key in ("width", "height"))
    assert all(0 <= x and x + wide <= width and 0 <= y and y + tall <= height for x, y, wide, tall in drawn)


def cores_of(kinds: str) -> list[dict[str, Any]]:
    names = {"a": "array", "v": "vector", "o": "offchip"}
    return [{"name": "c", "kind": names[kind], "lanes": 4, "memories": [("m", 64, 1)]} for kind in kinds]


def both(*pairs: tuple[int, int]) -> list[tuple[list[int], int, str]]:
    return [(list(way), 32, "link") for pair in pairs for way in (pair, pair[::-1])]


def test_links_of_neighbours_are_lines_and_others_tracks() -> None:
    """A ring of four goes around a square, a vector core serves all, and all pairs are one track."""
    ring = xml.fromstring(pictures.chip_svg(cores_of("aaaa"), both((0, 1), (1, 2), (2, 3), (3, 0))))
    assert len(list(ring.iter(SVG + "path"))) == 4
    labels = [text.text for text in ring.iter(SVG + "text")]
    assert labels.count("32 b") == 4
    served = xml.fromstring(pictures.chip_svg(cores_of("aaav"), both((3, 0), (3, 1), (3, 2))))
    assert [text.text for text in served.iter(SVG + "text") if "32 b" in str(text.text)] == ["3 to 0-2: 32 b each"]
    pairs = both(*[(a, b) for b in range(4) for a in range(b)])
    crossbar = xml.fromstring(pictures.chip_svg(cores_of("aaaa"), pairs))
    assert [text.text for text in crossbar.iter(SVG + "text") if "32 b" in str(text.text)] == ["each two of 0-3: 32 b"]
    uneven = pictures.chip_svg(cores_of("ao"), [([0, 1], 8, "link"), ([1, 0], 64, "link")])
    assert "8 b / 64 b" in uneven


def test_many_groups_of_links_are_counted() -> None:
    wires = [([0, 1, 2], 8 * i, "bus") for i in range(1, 13)]
    assert "4 more groups of links" in pictures.chip_svg(cores_of("aaao"), wires)


EVIL = "</svg><script>alert('&\"')</script>\x00\ud800"


def test_names_are_escaped(result: monet.Result, monkeypatch: pytest.MonkeyPatch) -> None:
    core = {"name": EVIL, "kind": EVIL, "lanes": 1, "memories": [(EVIL, 3, 2)]}
    wires = [([0, 1], 8, EVIL), ([0, 1, 2], 8, EVIL)]
    for svg in (pictures.network_svg([(EVIL, EVIL, [])]), pictures.chip_svg([core, *cores_of("ao")], wires)):
        tree = xml.fromstring(svg)
        assert not list(tree.iter(SVG + "script"))
        assert "<script" not in svg

    class Named:
        name = path = EVIL
        cores: list[dict[str, Any]] = []
        frequency_hz = area_mm2 = 0.0
        operators = parameters = 0
        inputs = outputs = [(EVIL, (1,), EVIL)]
        latency_cycles = 1
        layers = monet.Columns({name: np.array([EVIL if column.dtype == object else 1], column.dtype)
                                for name, column in result.layers.items()})  # fmt: skip
        _figures = result._figures
        _json = "x" * (9 << 20)

        class _handle:
            graph = links = staticmethod(lambda: [])

    for shown_as in (pictures.network_html, pictures.chip_html, pictures.result_html):
        text = shown_as(Named())  # type: ignore[arg-type]
        assert "<script" not in text
        assert "&lt;script" in text
        xml.fromstring(text)


class Frames(HTMLParser):
    """What frames show."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.pages: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "iframe":
            assert ("sandbox", "allow-scripts") in attrs
            self.pages.append(dict(attrs)["srcdoc"] or "")


def test_a_result_shows_its_figures_and_the_report(result: monet.Result, tmp_path: Path) -> None:
    begin = time.process_time()
    text = result._repr_html_()
    assert time.process_time() - begin < 2
    assert Frames(text).pages == [Path(result.report(tmp_path)).read_text(encoding="utf-8")]
    assert "<details>" in text  # closed
    around = xml.fromstring(re.sub(r"<iframe.*</iframe>", "", text, flags=re.DOTALL))
    cells = [[cell.text for cell in row] for row in around.iter("tr")]
    assert ["total", f"{result.latency_cycles:,}", f"{result.latency_cycles:,}"] in [row[:3] for row in cells]
    assert [row[0] for row in cells if len(row) == 6] == [None, "forward", "loss", "backward", "update", "total",
                                                          "inference alone"]  # fmt: skip
    layers = [row for row in cells if len(row) == 7]
    most = result.layers["critical_path_cycles"]
    assert [row[0] for row in layers] == ["layer", *result.layers["name"][:10], f"{len(most) - 10} more"]
    assert [row[2] for row in layers[1:]] == [*(f"{cycles:,}" for cycles in most[:10]), f"{most[10:].sum():,}"]


def test_a_report_in_a_cell_is_the_file_whatever_its_name(tmp_path: Path, chip: monet.Chip) -> None:
    file = tmp_path / "a&lt;b&#39;c'd\"e.onnx"
    file.write_bytes((DATA / "workload" / "ds_cnn.onnx").read_bytes())
    odd = monet.read_network(file).inference().schedule(chip, mode="layer-by-layer")
    page = Path(odd.report(tmp_path / "out")).read_text(encoding="utf-8")
    assert "&amp;lt;" in page
    assert Frames(odd._repr_html_()).pages == [page]


def test_a_large_report_is_left_to_its_file(result: monet.Result, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "_LARGEST_PAGE", 100_000)
    text = result._repr_html_()
    assert "iframe" not in text
    assert "result.report(folder)" in text
