// Runs the TorchScript program of this bundle once on example values and prints the outputs.
//
//   cmake -S . -B build -DCMAKE_PREFIX_PATH="$(python -c 'import torch; print(torch.utils.cmake_prefix_path)')"
//   cmake --build build
//   build/example ../model.pt
//
// Needs libtorch alone, from https://pytorch.org or from an installed torch, of the version that
// manifest.json names or a later one. It prints what `python load.py` prints.

#include <torch/script.h>

#include <iostream>
#include <string>
#include <vector>

#include "example.h"

namespace {

// A scripted module returns forward's own structure: its tensors, depth first; None is dropped.
void collect(const c10::IValue& value, std::vector<at::Tensor>& found) {
  if (value.isTensor()) {
    found.push_back(value.toTensor());
  } else if (value.isTuple()) {
    for (const auto& item : value.toTupleRef().elements()) collect(item, found);
  } else if (value.isList()) {
    for (const c10::IValue& item : value.toListRef()) collect(item, found);
  } else if (value.isGenericDict()) {
    for (const auto& item : value.toGenericDict()) collect(item.value(), found);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string path = argc > 1 ? argv[1] : "../model.pt";
  try {
    c10::InferenceMode inference;
    torch::jit::Module program = torch::jit::load(path, torch::kCPU);
    program.eval();
    std::vector<c10::IValue> positional;
    torch::jit::Kwargs named;
    for (const Input& input : INPUTS) {
      if (BY_KEYWORD) {
        named[input.name] = example_of(input);
      } else {
        positional.emplace_back(example_of(input));
      }
    }
    std::vector<at::Tensor> outputs;
    collect(program.forward(positional, named), outputs);
    print_outputs(outputs);
  } catch (const c10::Error& error) {
    std::cerr << path << ": " << error.what_without_backtrace() << '\n';
    return 1;
  } catch (const std::exception& error) {
    std::cerr << path << ": " << error.what() << '\n';
    return 1;
  }
  return 0;
}
