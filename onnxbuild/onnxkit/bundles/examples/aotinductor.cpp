// Runs the AOTInductor package of this bundle once on example values and prints the outputs.
//
//   cmake -S . -B build -DCMAKE_PREFIX_PATH="$(python -c 'import torch; print(torch.utils.cmake_prefix_path)')"
//   cmake --build build
//   build/example ../model.pt2
//
// Needs libtorch of exactly the version that manifest.json names, and a CPU with the instructions
// of the one it was compiled on. It prints what `python load.py` prints.

#include <torch/csrc/inductor/aoti_package/model_package_loader.h>

#include <iostream>
#include <string>
#include <vector>

#include "example.h"

int main(int argc, char** argv) {
  const std::string path = argc > 1 ? argv[1] : "../model.pt2";
  try {
    c10::InferenceMode inference;
    torch::inductor::AOTIModelPackageLoader program(path);
    std::vector<at::Tensor> inputs;
    for (const Input& input : INPUTS) inputs.push_back(example_of(input));
    print_outputs(program.run(inputs));
  } catch (const c10::Error& error) {
    std::cerr << path << ": " << error.what_without_backtrace() << '\n';
    return 1;
  } catch (const std::exception& error) {
    std::cerr << path << ": " << error.what() << '\n';
    return 1;
  }
  return 0;
}
