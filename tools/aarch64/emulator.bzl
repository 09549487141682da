"""What a genrule's command says before a program that is built for the target's machine."""

_EMULATED = str(Label("//tools/aarch64:emulated"))

EMULATOR = select({
    # A select takes a text where it stands, which may be another workspace; "@//" is the main one.
    ("@" if _EMULATED.startswith("//") else "") + _EMULATED: "qemu-aarch64 ",
    "//conditions:default": "",
})
