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
#include <utility>
#include <vector>

#include "example.h"

namespace {

struct Found {
  std::vector<std::pair<std::string, at::Tensor>> tensors;  // in order, under their keys
  bool has_keys = false;
};

std::string below(const std::string& path, const std::string& key) {
  return path.empty() ? key : path + "." + key;
}

std::string below(const std::string& path, size_t place) {
  return path.empty() ? "output_" + std::to_string(place) : path + "." + std::to_string(place);
}

// A scripted module returns forward's own structure: its tensors, depth first; None is dropped.
void collect(const c10::IValue& value, const std::string& path, Found& found) {
  if (value.isTensor()) {
    found.tensors.emplace_back(path, value.toTensor());
  } else if (value.isTuple()) {
    const auto type = value.toTupleRef().type();
    const auto& items = value.toTupleRef().elements();
    for (size_t n = 0; n < items.size(); ++n) {
      if (type->schema()) {  // a named tuple
        found.has_keys = true;
        collect(items[n], below(path, type->schema()->arguments()[n].name()), found);
      } else {
        collect(items[n], below(path, n), found);
      }
    }
  } else if (value.isList()) {
    size_t n = 0;
    for (const c10::IValue& item : value.toListRef()) collect(item, below(path, n++), found);
  } else if (value.isGenericDict()) {
    found.has_keys = true;
    for (const auto& item : value.toGenericDict()) {
      const c10::IValue& key = item.key();
      const std::string name = key.isString() ? key.toStringRef() : std::to_string(key.toInt());
      collect(item.value(), below(path, name), found);
    }
  }
}

// The outputs that manifest.json names: by key where there are keys, else by position.
std::vector<at::Tensor> outputs_of(const c10::IValue& value) {
  Found found;
  collect(value, "", found);
  std::vector<at::Tensor> outputs;
  if (!found.has_keys) {
    for (const auto& each : found.tensors) outputs.push_back(each.second);
    return outputs;
  }
  for (const std::string& wanted : OUTPUTS) {
    for (const auto& each : found.tensors) {
      std::string name = each.first;
      for (const Input& input : INPUTS) {
        if (each.first == input.name) name = each.first + "_out";
      }
      if (name == wanted) outputs.push_back(each.second);
    }
  }
  return outputs;
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
    print_outputs(outputs_of(program.forward(positional, named)));
  } catch (const c10::Error& error) {
    std::cerr << path << ": " << error.what_without_backtrace() << '\n';
    return 1;
  } catch (const std::exception& error) {
    std::cerr << path << ": " << error.what() << '\n';
    return 1;
  }
  return 0;
}
