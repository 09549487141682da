"""The instruction sets: a row each, which C++ has as FUSELAGE_ISAS (isas.h)."""

AVX2 = ["-mavx2", "-mfma"]

# GCC 12 warns of its own AVX-512 headers (GCC bug 105593).
_AVX512_VNNI = AVX2 + ["-mavx512" + part for part in ["f", "bw", "vl", "dq", "vnni"]] + [
    "-Wno-uninitialized",
    "-Wno-maybe-uninitialized",
]

# Products of SIMDe's mullo wrap, as the instruction's do.
_EMULATE = ["-DFUSELAGE_EMULATE_AVX512", "-Wno-psabi", "-fwrapv"]

# Each name, which is also the namespace of what is compiled for it, is Isa::k<Name> in C++.
#   includes: the sets whose instructions its sources use besides.
#   copts: the options that they are compiled with.
#   emulated: the options that they are compiled with again, for tests; none: they are not.
#   emulated_anywhere: on every architecture; else they are written in other intrinsics besides, and need x86 with AVX2.
ISAS = {
    # AVX2 with FMA.
    "avx2": struct(includes = [], copts = AVX2, emulated = [], emulated_anywhere = False),
    # vpdpbusd on YMM registers, in its VEX encoding.
    "avx_vnni": struct(includes = ["avx2"], copts = AVX2 + ["-mavxvnni"], emulated = _EMULATE, emulated_anywhere = False),
    # F, BW, VL, DQ, VNNI.
    "avx512_vnni": struct(includes = ["avx2"], copts = _AVX512_VNNI, emulated = _EMULATE, emulated_anywhere = True),
    # Tiles of int8. Their emulation's loops vectorize at -O3.
    "amx": struct(
        includes = ["avx512_vnni"],
        copts = _AVX512_VNNI + ["-mamx-tile", "-mamx-int8"],
        emulated = _EMULATE + ["-O3"],
        emulated_anywhere = True,
    ),
}

def _camel(name):
    return "".join([word.capitalize() for word in name.split("_")])

def isas_text():
    """The header: FUSELAGE_ISAS(Row, ...) is Row(Name, name, bit, includes, emulated_linkage, ...) for each row."""
    lines = [
        "// Generated from kernels/core/isas.bzl.",
        "#define FUSELAGE_ISAS(Row, ...) \\",
    ]
    for bit, (isa, row) in enumerate(ISAS.items()):
        lines.append("  Row(%s, %s, %d, (%s), %s, __VA_ARGS__) \\" % (
            _camel(isa),
            isa,
            bit,
            " | ".join(["Isa::k" + _camel(included) for included in row.includes] or ["Isa::kScalar"]),
            "" if row.emulated_anywhere else "FUSELAGE_X86",
        ))
    return "\n".join(lines) + "\n"

def isas_header(name):
    """<name>.h with that text.

    Args:
      name: of the header and its target.
    """
    native.genrule(
        name = name,
        outs = [name + ".h"],
        cmd = "cat > $@ <<'END_OF_TEXT'\n%s\nEND_OF_TEXT" % isas_text(),
    )
