"""What a genrule's command says before a program that is built for the target's machine."""

EMULATOR = select({
    "//tools/aarch64:emulated": "qemu-aarch64 ",
    "//conditions:default": "",
})
