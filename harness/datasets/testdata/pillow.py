"""Writes pillow.txt: what Pillow (Debian's python3-pil) makes of images that preprocess_test.cc makes too.

Resize and CenterCrop as torchvision does them, on Pillow's Image.resize. A line: height, width and channels of the
source, the shorter side, height and width of the crop, then the crop's bytes.
"""

from PIL import Image

# height, width, channels, shorter side, height and width of the crop.
CASES = [
    (20, 30, 3, 8, 6, 7),  # Smaller.
    (31, 17, 3, 8, 8, 8),  # Upright, the crop as wide as the image.
    (5, 4, 3, 9, 7, 9),  # Larger.
    (37, 50, 1, 10, 7, 7),  # Gray, by no whole factor; the middle lies between two pixels.
    (200, 150, 1, 5, 5, 4),  # 30 source pixels a tap.
    (9, 9, 3, 9, 6, 6),  # Only cropped.
    (1, 40, 1, 3, 3, 3),  # A line.
]


def pattern(size):
    state, out = 1, bytearray()
    for _ in range(size):
        state = (state * 1664525 + 1013904223) % 2**32
        out.append(state >> 24)
    return bytes(out)


def main():
    with open("pillow.txt", "w", encoding="ascii") as file:
        for height, width, channels, side, crop_height, crop_width in CASES:
            image = Image.frombytes("L" if channels == 1 else "RGB", (width, height), pattern(height * width * channels))
            longer = int(side * max(height, width) / min(height, width))
            size = (side, longer) if width <= height else (longer, side)
            left = int(round((size[0] - crop_width) / 2.0))
            top = int(round((size[1] - crop_height) / 2.0))
            crop = image.resize(size, Image.BILINEAR).crop((left, top, left + crop_width, top + crop_height))
            line = [height, width, channels, side, crop_height, crop_width, *crop.tobytes()]
            print(*line, file=file)


main()
