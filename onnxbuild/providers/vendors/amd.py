"""AMD: GPUs, and what HIP says when it can't use one."""

from onnxbuild.core.provider import Symptom, Vendor

AMD = Vendor(
    name="AMD",
    pci="0x1002",
    devices=("kfd",),
    drivers=("/sys/module/amdgpu",),
    variable="CUDA_VISIBLE_DEVICES",  # HIP heeds it, too
    lists="rocm-smi",
    container="docker run --device /dev/kfd --device /dev/dri ...",
)

SYMPTOMS = (Symptom("device", r"no ROCm-capable device|hipErrorNoDevice"),)
