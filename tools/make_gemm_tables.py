#!/usr/bin/env python3
"""Writes data/workload/gemm/: the nine networks of the interleaved-gradients study as lists of products.

    tools/make_gemm_tables.py                  # all tables
    tools/make_gemm_tables.py --check          # fails where a committed table differs

Every architecture is written down here after its publication; shapes follow from it. A layer is the product of its
forward pass over one sample, Y(m, n) = X(m, k) W(k, n): a convolution has m output positions, k kernel elements times
input channels and n output channels, and reads `input` different elements of its input. `repeats`: so many of them,
one group of a convolution each, or equal layers. `first`: its input is the network's, so nobody needs its gradient.
Products without weights (attention's scores) and embeddings, which are look-ups, are not in the tables.
"""
import argparse
import pathlib
import sys

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "data" / "workload" / "gemm"


class Table:
    def __init__(self, name, about):
        self.name = name
        self.about = about
        self.layers = []

    def product(self, name, m, k, n, repeats=1, first=False, inputs=None):
        self.layers.append({"name": name, "m": m, "k": k, "n": n, "input": inputs, "repeats": repeats,
                            "first": first})

    def conv(self, name, side, channels, filters, kernel, stride=1, padding=None, groups=1, first=False):
        """On a square input; returns the side of the output. Padding: half of the kernel unless given."""
        padding = kernel // 2 if padding is None else padding
        out = (side + 2 * padding - kernel) // stride + 1
        rows = {o * stride + f - padding for o in range(out) for f in range(kernel)}
        read = sum(1 for row in rows if 0 <= row < side)
        k = channels // groups * kernel * kernel
        self.product(name, out * out, k, filters // groups, groups, first, read * read * channels // groups)
        return out

    def weights(self):
        return sum(layer["k"] * layer["n"] * layer["repeats"] for layer in self.layers)

    def macs(self):
        return sum(layer["m"] * layer["k"] * layer["n"] * layer["repeats"] for layer in self.layers)

    def text(self):
        lines = [f"# {line}".rstrip() for line in self.about.strip().split("\n")]
        lines += [f"# {self.weights():,} weights and {self.macs():,} MACs a sample in the products below.",
                  "# Written by tools/make_gemm_tables.py.", f"name: {self.name}", "layers:"]
        for layer in self.layers:
            parts = [f"name: {layer['name']}"] + [f"{key}: {layer[key]}" for key in ("m", "k", "n")]
            if layer["input"] is not None and layer["input"] != layer["m"] * layer["k"]:
                parts.append(f"input: {layer['input']}")
            if layer["repeats"] != 1:
                parts.append(f"repeats: {layer['repeats']}")
            if layer["first"]:
                parts.append("first: true")
            lines.append("  - {" + ", ".join(parts) + "}")
        return "\n".join(lines) + "\n"


def residual_stages(net, side, blocks, stride_in_3x3):
    """Bottleneck blocks of ResNet (He et al., CVPR 2016, table 1) behind the first pooling."""
    channels = 64
    for stage, count in enumerate(blocks):
        width = 64 << stage
        for block in range(count):
            name = f"conv{stage + 2}_{block + 1}"
            stride = 2 if stage > 0 and block == 0 else 1
            inner = net.conv(f"{name}.1", side, channels, width, 1, 1 if stride_in_3x3 else stride)
            after = net.conv(f"{name}.2", inner, width, width, 3, stride if stride_in_3x3 else 1)
            net.conv(f"{name}.3", after, width, 4 * width, 1)
            if block == 0:
                net.conv(f"{name}.shortcut", side, channels, 4 * width, 1, stride)
            side, channels = after, 4 * width
    return side


def resnet50():
    net = Table("resnet50", """
ResNet-50: He, Zhang, Ren, Sun, "Deep Residual Learning for Image Recognition", CVPR 2016, table 1, with the stride of a
block in its 3x3 convolution, as torchvision has it: 25,557,032 parameters with biases and batch normalisation, 4.09 GMACs.
Assumed: images of 224 x 224.""")
    side = net.conv("conv1", 224, 3, 64, 7, 2, first=True)
    residual_stages(net, side // 2, (3, 4, 6, 3), True)
    net.product("fc", 1, 2048, 1000)
    return net


def faster_rcnn():
    net = Table("faster_rcnn", """
Faster R-CNN: Ren, He, Girshick, Sun, NeurIPS 2015, with ResNet-50 up to conv4 as the trunk and a region proposal network
of 512 channels with 9 anchors: the layers that SCALE-Sim, on which the study's simulator builds, has for it.
Assumed: images of 224 x 224, as there (detectors are usually trained at 600 pixels and more), and no head for boxes.
The study says 19 M parameters; these layers have 13.3 M.""")
    side = net.conv("conv1", 224, 3, 64, 7, 2, first=True)
    side = residual_stages(net, side // 2, (3, 4, 6), False)
    net.conv("rpn.conv", side, 1024, 512, 3)
    net.conv("rpn.boxes", side, 512, 36, 1)
    net.conv("rpn.classes", side, 512, 18, 1)
    return net


# 1x1, 3x3 reduce, 3x3, 5x5 reduce, 5x5, pool projection: Szegedy et al., table 1.
INCEPTIONS = [("3a", 28, 192, (64, 96, 128, 16, 32, 32)), ("3b", 28, 256, (128, 128, 192, 32, 96, 64)),
              ("4a", 14, 480, (192, 96, 208, 16, 48, 64)), ("4b", 14, 512, (160, 112, 224, 24, 64, 64)),
              ("4c", 14, 512, (128, 128, 256, 24, 64, 64)), ("4d", 14, 512, (112, 144, 288, 32, 64, 64)),
              ("4e", 14, 528, (256, 160, 320, 32, 128, 128)), ("5a", 7, 832, (256, 160, 320, 32, 128, 128)),
              ("5b", 7, 832, (384, 192, 384, 48, 128, 128))]


def googlenet():
    net = Table("googlenet", """
GoogLeNet: Szegedy et al., "Going Deeper with Convolutions", CVPR 2015, table 1, without the auxiliary classifiers.
Assumed: images of 224 x 224. The study says 62 M parameters; the published network has 7 M.""")
    net.conv("conv1", 224, 3, 64, 7, 2, first=True)
    net.conv("conv2.reduce", 56, 64, 64, 1)
    net.conv("conv2", 56, 64, 192, 3)
    for name, side, channels, (one, reduce3, three, reduce5, five, pool) in INCEPTIONS:
        net.conv(f"{name}.1x1", side, channels, one, 1)
        net.conv(f"{name}.3x3_reduce", side, channels, reduce3, 1)
        net.conv(f"{name}.3x3", side, reduce3, three, 3)
        net.conv(f"{name}.5x5_reduce", side, channels, reduce5, 1)
        net.conv(f"{name}.5x5", side, reduce5, five, 5)
        net.conv(f"{name}.pool", side, channels, pool, 1)
    net.product("fc", 1, 1024, 1000)
    return net


def mobilenet():
    net = Table("mobilenet", """
MobileNet v1 (1.0, 224): Howard et al., arXiv 1704.04861, table 1: 4.2 M parameters, 569 M MACs.
A depthwise convolution is one product of one column for each channel. Assumed: images of 224 x 224.
The study says 13 M parameters.""")
    side = net.conv("conv1", 224, 3, 32, 3, 2, first=True)
    channels = 32
    blocks = [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2)] + [(512, 1)] * 5 + [(1024, 2), (1024, 1)]
    for number, (filters, stride) in enumerate(blocks, 2):
        side = net.conv(f"conv{number}.depthwise", side, channels, channels, 3, stride, groups=channels)
        net.conv(f"conv{number}.pointwise", side, channels, filters, 1)
        channels = filters
    net.product("fc", 1, 1024, 1000)
    return net


def yolov5():
    net = Table("yolov5", """
YOLO v5l, release 6.0: Ultralytics, models/yolov5l.yaml: 46.5 M parameters, 109.1 GFLOPs (two for a MAC) at 640 pixels.
The study says 47 M parameters. Assumed: 80 classes, images of 640 x 640, the size of its published figures.""")

    def c3(name, side, channels, filters, count):
        half = filters // 2
        net.conv(f"{name}.cv1", side, channels, half, 1)
        net.conv(f"{name}.cv2", side, channels, half, 1)
        for i in range(count):
            net.conv(f"{name}.m{i}.cv1", side, half, half, 1)
            net.conv(f"{name}.m{i}.cv2", side, half, half, 3)
        net.conv(f"{name}.cv3", side, filters, filters, 1)

    side = net.conv("0", 640, 3, 64, 6, 2, padding=2, first=True)
    for number, filters, count in ((1, 128, 3), (3, 256, 6), (5, 512, 9), (7, 1024, 3)):
        side = net.conv(str(number), side, filters // 2, filters, 3, 2)
        c3(str(number + 1), side, filters, filters, count)
    net.conv("9.cv1", side, 1024, 512, 1)
    net.conv("9.cv2", side, 2048, 1024, 1)
    net.conv("10", side, 1024, 512, 1)
    c3("13", 2 * side, 1024, 512, 3)
    net.conv("14", 2 * side, 512, 256, 1)
    c3("17", 4 * side, 512, 256, 3)
    net.conv("18", 4 * side, 256, 256, 3, 2)
    c3("20", 2 * side, 512, 512, 3)
    net.conv("21", 2 * side, 512, 512, 3, 2)
    c3("23", side, 1024, 1024, 3)
    for i, (scale, channels) in enumerate(((4, 256), (2, 512), (1, 1024))):
        net.conv(f"24.m{i}", scale * side, channels, 255, 1)
    return net


def yolov2_tiny():
    net = Table("yolov2_tiny", """
YOLO v2-tiny for COCO: Redmon and Farhadi, CVPR 2017, and darknet's cfg/yolov2-tiny.cfg: 5.41 GFLOPs (two for a MAC).
The study says 11 M parameters, which is this one (for VOC it has 15.8 M). Assumed: images of 416 x 416, as there.""")
    side, channels = 416, 3
    for number, filters in enumerate((16, 32, 64, 128, 256, 512), 1):
        net.conv(f"conv{number}", side, channels, filters, 3, first=number == 1)
        side, channels = (side if number == 6 else side // 2), filters
    net.conv("conv7", side, 512, 1024, 3)
    net.conv("conv8", side, 1024, 512, 3)
    net.conv("conv9", side, 512, 425, 1)
    return net


def mlp(net, prefix, widths, first=False):
    for i, (k, n) in enumerate(zip(widths, widths[1:])):
        net.product(f"{prefix}.{i}", 1, k, n, first=first and i == 0)


def ncf():
    net = Table("ncf", """
NCF (NeuMF): He et al., "Neural Collaborative Filtering", WWW 2017, with the sizes of MLPerf training v0.5: 64 factors,
layers of 256, 256, 128 and 64, MovieLens-20M. Assumed: its embeddings are look-ups, without products (the
study says 3 B parameters, nearly all embeddings); the first layer hands a gradient to them.""")
    mlp(net, "mlp", (256, 256, 128, 64))
    net.product("predict", 1, 128, 1)
    return net


def dlrm():
    net = Table("dlrm", """
DLRM: Naumov et al., arXiv 1906.00091, with the sizes of MLPerf training v1.0 (Criteo 1TB): 13 dense features, 26
embeddings of 128, bottom layers of 512, 256, 128, top layers of 1024, 1024, 512, 256, 1 on 479 inputs (128 and the 351
products of pairs among 27). The study says 25 B parameters, nearly all embeddings. Assumed: these are look-ups.""")
    mlp(net, "bottom", (13, 512, 256, 128), first=True)
    mlp(net, "top", (128 + 27 * 26 // 2, 1024, 1024, 512, 256, 1))
    return net


def bert(name, about, layers, width, inner, tokens):
    net = Table(name, f"""
{about}
Assumed: sequences of {tokens} tokens; the encoder and the pooler, no head for pre-training. Embeddings are look-ups that get a
gradient.""")
    net.product("attention.query_key_value", tokens, width, width, 3 * layers)
    net.product("attention.output", tokens, width, width, layers)
    net.product("intermediate", tokens, width, inner, layers)
    net.product("output", tokens, inner, width, layers)
    net.product("pooler", 1, width, width)
    return net


def bert_large(tokens=128):
    return bert("bert_large" if tokens == 128 else f"bert_large_s{tokens}",
                'BERT-large: Devlin et al., NAACL 2019: 24 layers of 1024, 4096 inside, 340 M parameters.',
                24, 1024, 4096, tokens)


def bert_tiny(tokens=128):
    return bert("bert_tiny" if tokens == 128 else f"bert_tiny_s{tokens}", """\
BERT-tiny: the study says 14 M parameters, which is TinyBERT of 4 layers of 312, 1200 inside (Jiao et al., Findings of
EMNLP 2020: 14.5 M parameters, 1.2 GFLOPs at 128 tokens).""", 4, 312, 1200, tokens)


def t5(name, about, layers, width, inner, tokens):
    net = Table(name, f"""
{about}
Assumed: {tokens} tokens into the encoder and {tokens} into the decoder. Embeddings are look-ups that get a gradient; the output layer,
which shares their weights, is a product.""")
    for part, attentions in (("encoder", 1), ("decoder", 2)):
        net.product(f"{part}.attention", tokens, width, width, 4 * attentions * layers)
        net.product(f"{part}.wi", tokens, width, inner, layers)
        net.product(f"{part}.wo", tokens, inner, width, layers)
    net.product("lm_head", tokens, width, 32128)
    return net


def t5_large(tokens=128):
    return t5(
        "t5_large" if tokens == 128 else f"t5_large_s{tokens}",
        "T5-large: Raffel et al., JMLR 21, 2020: 24 + 24 layers of 1024, 4096 inside, 737,668,096 parameters.", 24,
        1024, 4096, tokens)


def t5_small(tokens=128):
    return t5("t5_small" if tokens == 128 else f"t5_small_s{tokens}",
              "T5-small: Raffel et al., JMLR 21, 2020: 6 + 6 layers of 512, 2048 inside, 60,506,624 parameters.",
              6, 512, 2048, tokens)


def all_tables():
    tables = [faster_rcnn(), googlenet(), ncf(), resnet50(), dlrm(), mobilenet(), yolov5(), yolov2_tiny()]
    for tokens in (128, 512):
        tables += [bert_large(tokens), bert_tiny(tokens), t5_large(tokens), t5_small(tokens)]
    return tables


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    check = parser.parse_args().check
    FOLDER.mkdir(parents=True, exist_ok=True)
    different = []
    for table in all_tables():
        path = FOLDER / f"{table.name}.yaml"
        if not check:
            path.write_text(table.text())
            print(
                f"{table.name:16} {len(table.layers):4} lines {table.weights():14,} weights {table.macs():16,} MACs")
        elif not path.exists() or path.read_text() != table.text():
            different.append(path.name)
    if different:
        sys.exit("differ: " + ", ".join(different))


if __name__ == "__main__":
    main()
