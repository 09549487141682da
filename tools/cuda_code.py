#!/usr/bin/env python3
"""What nvcc made of the CUDA kernels, as Markdown, from object files, without tools of the toolkit.

    tools/cuda_code.py [--arch=90] OBJECT.o...

prints the size of the code for each architecture, and of each kernel on one: instructions (128 bits each), registers a
thread, bytes of stack (spills are among them), warps a block, and blocks a multiprocessor has registers and threads
for. Shared memory may allow fewer; it is asked for at each launch. Bazel's objects, after a build of //kernels/..., are

    $(find -L bazel-bin/kernels -path '*_objects/*.pic.o')
"""

import re
import struct
import subprocess
import sys

_FATBIN = struct.pack("<I", 0xBA55ED50)
_ELF, _PTX = 2, 1
# In .nv.info: a format, an attribute, a 16-bit size or value.
_MAX_THREADS, _FRAME_SIZE, _REGISTER_COUNT = 0x05, 0x11, 0x2F
_SIZED = 0x04

# What a multiprocessor has: registers, and blocks and threads by architecture.
_REGISTERS, _BLOCKS = 65536, {"86": 16, "89": 24, "120": 24}
_THREADS = {"80": 2048, "86": 1536, "89": 1536, "90": 2048, "100": 2048, "120": 1536}


def entries(data):
    """(kind, architecture, bytes) of all that the fatbins in an object hold. Large cubins are compressed: by zstd."""
    at = data.find(_FATBIN)
    while at >= 0:
        header, size = struct.unpack_from("<HQ", data, at + 6)
        entry, end = at + header, at + header + size
        while entry < end:
            kind, _, header, size = struct.unpack_from("<HHIQ", data, entry)
            content = data[entry + header:entry + header + size]
            packed, = struct.unpack_from("<I", data, entry + 16)
            if kind == _ELF and packed:
                content = subprocess.run(["zstd", "-dcq"], input=content[:packed], check=True, capture_output=True).stdout
            yield kind, str(struct.unpack_from("<I", data, entry + 28)[0]), content
            entry += header + size
        at = data.find(_FATBIN, end)


def sections(cubin):
    """name: (header, bytes) of a 64-bit ELF file."""
    offset, = struct.unpack_from("<Q", cubin, 40)
    size, count, names = struct.unpack_from("<HHH", cubin, 58)
    headers = [struct.unpack_from("<IIQQQQIIQQ", cubin, offset + i * size) for i in range(count)]
    strings = headers[names][4]
    result = {}
    for header in headers:
        begin = strings + header[0]
        name = cubin[begin:cubin.index(b"\0", begin)].decode()
        result[name] = header, cubin[header[4]:header[4] + header[5]]
    return result


def attributes(info):
    """(attribute, payload) of a .nv.info section."""
    at = 0
    while at < len(info):
        form, attribute, size = struct.unpack_from("<BBH", info, at)
        payload = info[at + 4:at + 4 + size] if form == _SIZED else b""
        yield attribute, payload
        at += 4 + len(payload)


def kernels(cubin):
    """(mangled name, instructions, registers, bytes of stack, threads a block) of each kernel."""
    all_sections = sections(cubin)
    by_symbol = {_FRAME_SIZE: {}, _REGISTER_COUNT: {}}
    for attribute, payload in attributes(all_sections[".nv.info"][1]):
        if attribute in by_symbol:
            symbol, value = struct.unpack("<II", payload)
            by_symbol[attribute][symbol] = value
    for name, (header, code) in all_sections.items():
        if not name.startswith(".text."):
            continue
        kernel, symbol = name[len(".text."):], header[7] & 0xFFFFFF  # Older cubins have the registers above.
        info = dict(attributes(all_sections[".nv.info." + kernel][1]))
        threads, = struct.unpack_from("<I", info[_MAX_THREADS])
        yield kernel, len(code) // 16, by_symbol[_REGISTER_COUNT][symbol], by_symbol[_FRAME_SIZE][symbol], threads


def blocks_of(registers, threads, arch):
    """How many blocks of so many threads fit a multiprocessor; registers are handed out to warps in units of 256."""
    warps = threads // 32
    a_warp = (registers * 32 + 255) // 256 * 256
    return min(_REGISTERS // a_warp // warps, _THREADS[arch] // threads, _BLOCKS.get(arch, 32))


def short(demangled):
    """void fuselage::cuda::RunKernel<fuselage::int8::add::cuda::(anonymous namespace)::Add>(...) is int8::add::Add."""
    name = re.sub(r"\(anonymous namespace\)::|\bcuda::|fuselage::|^void ", "", demangled).partition("(")[0]
    for long, brief in [("unsigned char", "u8"), ("signed char", "i8"), ("unsigned short", "u16"), ("unsigned int", "u32")]:
        name = name.replace(long, brief)
    # Kernels are arguments of the function that runs them.
    return re.sub(r"^(RunKernel|int8::conv2d::Conv2d)<(.*)>$", r"\2", name.strip()).replace(" >", ">").strip()


def of_both(name):
    """A kernel of u8 and one of i8 codes, which are alike, as one."""
    return re.sub(r"\b[ui]8\b", "x8", name)


def main(arguments):
    arch = "90"
    if arguments and arguments[0].startswith("--arch="):
        arch = arguments.pop(0)[len("--arch="):]
    if not arguments or arch not in _THREADS:
        sys.exit(__doc__)
    sizes, rows = {}, []
    for path in arguments:
        with open(path, "rb") as file:
            data = file.read()
        for kind, of, content in entries(data):
            code = len(content)
            if kind == _ELF:
                found = list(kernels(content))
                code = sum(16 * row[1] for row in found)
                if of == arch:
                    rows += found
            key = ("sm_" if kind == _ELF else "PTX, compressed: compute_") + of
            count, total, whole = sizes.get(key, (0, 0, 0))
            sizes[key] = count + 1, total + code, whole + len(content)
    names = subprocess.run(["c++filt"] + [row[0] for row in rows], check=True, capture_output=True, text=True)
    print("| code for | objects | code, KB | with tables and line numbers, KB |\n| --- | --- | --- | --- |")
    for key, (count, total, whole) in sorted(sizes.items(), key=lambda item: (item[0][0] == "P", item)):
        print(f"| {key} | {count} | {total / 1e3:.0f} | {whole / 1e3:.0f} |")
    print(f"\n| kernel, sm_{arch} | instructions | registers | stack | warps | blocks |")
    print("| --- | --- | --- | --- | --- | --- |")
    found = sorted((short(name), *row[1:]) for name, row in zip(names.stdout.splitlines(), rows))
    for name, count, registers, stack, threads in dict.fromkeys((of_both(row[0]), *row[1:]) for row in found):
        print(f"| `{name}` | {count} | {registers} | {stack} | {threads // 32} | {blocks_of(registers, threads, arch)} |")


if __name__ == "__main__":
    main(sys.argv[1:])
