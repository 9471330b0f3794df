#!/usr/bin/env python3
"""Draws the data set `generated` of `monet train` a second time, for readers and for its test.

The script draws docs/pictures/generated_shapes.png, a row for each of the ten classes, and prints the hashes
(FNV-1a of all bytes) that tests/fit/shapes_test.cpp expects. It implements the description of the data set,
pixel by pixel with Python's integers, and shares no code with src/fit/data/shapes.cpp.

    tools/draw_shapes.py            # the hashes
    tools/draw_shapes.py --picture  # the picture, too (needs matplotlib)
"""

import sys
from pathlib import Path

MASK = (1 << 64) - 1
UNITS = 64  # units of length in a pixel
SHAPES = ("disc ring square frame triangle cross diagonal_cross horizontal_bars vertical_bars checkerboard").split()
REPOSITORY = Path(__file__).resolve().parent.parent


def random_bits(seed: int, counter: int) -> int:
    z = (seed + (counter + 1) * 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ z >> 27) * 0x94D049BB133111EB) & MASK
    return z ^ z >> 31


class Stream:
    def __init__(self, seed: int, number: int) -> None:
        self.seed, self.counter = random_bits(random_bits(seed, 0), number), -1

    def bits(self) -> int:
        self.counter += 1
        return random_bits(self.seed, self.counter)

    def below(self, count: int) -> int:
        return self.bits() % count


def toward_zero(a: int, b: int) -> int:
    return abs(a) // b * (1 if a >= 0 else -1)


def holds(shape: str, u: int, v: int, r: int) -> bool:
    far, near, square = max(abs(u), abs(v)), min(abs(u), abs(v)), u * u + v * v
    in_square = 100 * far <= 85 * r

    def stripe(place: int, count: int) -> int:
        return (100 * place + 85 * r) * count // (170 * r + 1)

    if shape == "disc":
        return square <= r * r
    if shape == "ring":
        return 0.36 * r * r <= square <= r * r
    if shape == "square":
        return in_square
    if shape == "frame":
        return in_square and far > r / 2
    if shape == "triangle":
        return v <= r / 2 and 1.732 * abs(u) <= v + r
    if shape == "cross":
        return far <= r and 100 * near <= 28 * r
    if shape == "diagonal_cross":
        a, b = abs(u + v), abs(u - v)
        return 100 * max(a, b) <= 141 * r and 100 * min(a, b) <= 40 * r
    if shape == "horizontal_bars":
        return in_square and stripe(v, 5) in (0, 2, 4)
    if shape == "vertical_bars":
        return in_square and stripe(u, 5) in (0, 2, 4)
    return in_square and (stripe(u, 4) + stripe(v, 4)) % 2 == 0


def draw(seed: int, number: int, size: tuple[int, int, int] = (3, 16, 16), classes: int = 10,
         noise: float = 0.1) -> bytes:
    channels, height, width = size
    stream = Stream(seed, number)
    side = min(height, width) * UNITS
    r = side * 28 // 100 + stream.below(side * 17 // 100 + 1)
    centre_x = r + stream.below(width * UNITS - 2 * r + 1)
    centre_y = r + stream.below(height * UNITS - 2 * r + 1)
    turn = stream.below(17) - 8
    for _ in range(8):
        colours = [(stream.below(256), stream.below(256)) for _ in range(channels)]
        if max(abs(a - b) for a, b in colours) >= 96:
            break
    else:
        colours = [((ground + 128) % 256, ground) for _, ground in colours]
    cosine, sine, one = 4096 - turn * turn, 128 * turn, 4096 + turn * turn
    cover = []
    for y in range(height):
        for x in range(width):
            count = 0
            for i in range(4):
                for j in range(4):
                    dx, dy = 64 * x + 8 + 16 * j - centre_x, 64 * y + 8 + 16 * i - centre_y
                    u = toward_zero(cosine * dx + sine * dy, one)
                    v = toward_zero(cosine * dy - sine * dx, one)
                    count += holds(SHAPES[number % classes], u, v, r)
            cover.append(count)
    deviation = int(noise * 255 * 65536 + 0.5)
    pixels = bytearray()
    for front, ground in colours:
        for count in cover:
            value = (ground * (16 - count) + front * count + 8) // 16
            if deviation:
                bits = stream.bits()
                total = sum(bits >> 16 * part & 0xFFFF for part in range(4))
                scaled = (total - 2 * 65535) * deviation
                value += toward_zero(scaled + (37837 * 32768 if scaled >= 0 else -37837 * 32768), 37837 * 65536)
            pixels.append(min(max(value, 0), 255))
    return bytes(pixels)


def fnv1a(data: bytes) -> int:
    value = 0xCBF29CE484222325
    for byte in data:
        value = ((value ^ byte) * 0x100000001B3) & MASK
    return value


def write_picture(path: Path, columns: int = 8, zoom: int = 4, gap: int = 4) -> None:
    """Draws images of `generated` with seed 1 and default settings, one class a row."""
    import matplotlib.image
    import numpy

    rows = []
    for label in range(10):
        images = [numpy.frombuffer(draw(1, 10 * column + label), numpy.uint8).reshape(3, 16, 16) for column in range(columns)]
        tiles = [numpy.kron(image.transpose(1, 2, 0), numpy.ones((zoom, zoom, 1), numpy.uint8)) for image in images]
        rows.append(numpy.hstack([numpy.pad(tile, ((gap, 0), (gap, 0), (0, 0)), constant_values=255) for tile in tiles]))
    matplotlib.image.imsave(path, numpy.pad(numpy.vstack(rows), ((0, gap), (0, gap), (0, 0)), constant_values=255))


def main() -> None:
    default = b"".join(draw(1, i) for i in range(100))
    test = b"".join(draw(1, 2_520_000_000 + i) for i in range(20))
    grey = b"".join(draw(7, i, (1, 11, 20), 4, 0.0) for i in range(40))
    loud = b"".join(draw(2**63 - 1, 1000 + i, (2, 8, 8), 10, 1.0) for i in range(30))
    for name, data in (("default", default), ("test", test), ("grey", grey), ("loud", loud)):
        print(f"{name}: 0x{fnv1a(data):016X}")
    if "--picture" in sys.argv[1:]:
        write_picture(REPOSITORY / "docs" / "pictures" / "generated_shapes.png")


if __name__ == "__main__":
    main()
