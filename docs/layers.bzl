"""What each layer's libraries see of the tree, directly or not: //docs:layers_test holds them to it."""

SEES = {
    "//ir/base": ["ir/base"],
    "//ir": ["ir", "ir/base"],
    "//ir/ops": ["ir", "ir/base", "ir/ops/..."],
    "//ir/match": ["ir", "ir/base", "ir/match"],
    "//interpreter": ["ir", "ir/base", "interpreter"],
    "//frontend/fx": ["ir", "ir/base", "frontend/fx"],
    "//frontend/onnx": ["ir", "ir/base", "frontend/onnx"],
    "//frontend/onnx/writer": ["ir", "ir/base", "frontend/onnx/..."],
    "//passes/core": ["ir", "ir/base", "passes/core"],
    "//passes": ["ir", "ir/base", "ir/match", "kernels/core/...", "passes/..."],
    "//kernels/core": ["ir/base", "kernels/core/..."],
    "//kernels": ["ir/base", "kernels/..."],
    "//kernels:cuda_kernels": ["ir/base", "kernels/..."],
    "//kernels:reproducible_kernels": ["ir/base", "kernels/..."],
    "//runtime": ["ir", "ir/base", "kernels/core/...", "runtime"],
    "//runtime/cuda": ["ir", "ir/base", "kernels/core/...", "kernels/cuda", "runtime/..."],
    "//compiler": ["compiler", "frontend/...", "interpreter", "ir/...", "kernels/...", "passes/...", "runtime/..."],
    "//compiler/standalone:network": ["compiler/standalone", "ir", "ir/base", "kernels/core/...", "runtime"],
    "//capi": ["capi", "compiler", "frontend/...", "interpreter", "ir/...", "kernels/...", "passes/...", "runtime/..."],
}
