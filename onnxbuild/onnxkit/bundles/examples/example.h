// Inputs and outputs of this bundle's program, as its manifest.json tells them.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>

#include <cinttypes>
#include <cstdio>
#include <string>
#include <vector>

struct Input {
  const char* name;
  at::ScalarType dtype;
  std::vector<int64_t> shape;  // at the example sizes of the dynamic axes
};

static const std::vector<Input> INPUTS = {
@INPUTS@
};
static const std::vector<std::string> OUTPUTS = {@OUTPUTS@};
static const bool BY_KEYWORD = @BY_KEYWORD@;
static const int64_t SHOWN = 8;  // values printed of each output

// -0.75, -0.5, ... 0.75 again and again, or ones where the input is not of floats.
inline at::Tensor example_of(const Input& input) {
  if (!at::isFloatingType(input.dtype)) return at::ones(input.shape, input.dtype);
  int64_t count = 1;
  for (int64_t size : input.shape) count *= size;
  const at::Tensor steps = at::arange(count, at::kLong).remainder(7).sub(3);
  return steps.to(at::kDouble).div(4).to(input.dtype).reshape(input.shape);
}

inline const char* name_of(at::ScalarType dtype) {
  switch (dtype) {
    case at::kFloat: return "float32";
    case at::kDouble: return "float64";
    case at::kHalf: return "float16";
    case at::kBFloat16: return "bfloat16";
    case at::kLong: return "int64";
    case at::kInt: return "int32";
    case at::kShort: return "int16";
    case at::kChar: return "int8";
    case at::kByte: return "uint8";
    case at::kBool: return "bool";
    default: return "another type";
  }
}

inline void print_outputs(const std::vector<at::Tensor>& outputs) {
  for (size_t n = 0; n < outputs.size(); ++n) {
    const at::Tensor& output = outputs[n];
    const std::string name = n < OUTPUTS.size() ? OUTPUTS[n] : "output_" + std::to_string(n);
    std::printf("%s %s [", name.c_str(), name_of(output.scalar_type()));
    for (int64_t d = 0; d < output.dim(); ++d) {
      std::printf(d ? ", %" PRId64 : "%" PRId64, output.size(d));
    }
    std::printf("]\n");
    const at::Tensor flat = output.contiguous().reshape({-1});
    const int64_t shown = flat.numel() < SHOWN ? flat.numel() : SHOWN;
    for (int64_t i = 0; i < shown; ++i) {
      if (at::isFloatingType(flat.scalar_type())) {
        std::printf(" %.9g", flat[i].item<double>());
      } else {
        std::printf(" %" PRId64, flat[i].to(at::kLong).item<int64_t>());
      }
    }
    std::printf("\n");
  }
}
