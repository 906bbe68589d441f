// Runs the ONNX model of this bundle once on example values, on the CPU, and prints the outputs.
//
//   cmake -S . -B build -DORT_INCLUDE_DIR=... -DORT_LIBRARY=.../libonnxruntime.so
//   cmake --build build
//   build/example ../model.onnx
//
// Needs ONNX Runtime's headers and library (its release archives, or packages such as
// libonnxruntime-dev), of the version that manifest.json names or a later one; headers may be older
// than the library. Providers and session settings are those of load.py, which reads them from
// manifest.json; here they are ONNX Runtime's own.

#include <onnxruntime_cxx_api.h>

#include <algorithm>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

// The dynamic axes at their example sizes, as manifest.json tells them.
const std::map<std::string, int64_t> AXES = {@AXES@};
constexpr size_t SHOWN = 8;  // values printed of each output

struct Input {
  std::string name;
  ONNXTensorElementDataType type;
  std::vector<int64_t> shape;
  size_t count = 1;
};

Input input_of(const Ort::Session& session, size_t n, Ort::AllocatorWithDefaultOptions& allocator) {
  const Ort::TypeInfo info = session.GetInputTypeInfo(n);
  const auto tensor = info.GetTensorTypeAndShapeInfo();
  Input input{session.GetInputNameAllocated(n, allocator).get(), tensor.GetElementType(),
              tensor.GetShape()};
  std::vector<const char*> symbols(input.shape.size());
  tensor.GetSymbolicDimensions(symbols.data(), symbols.size());
  for (size_t d = 0; d < input.shape.size(); ++d) {
    if (input.shape[d] < 0) {
      const auto found = AXES.find(symbols[d]);
      input.shape[d] = found == AXES.end() ? 1 : found->second;
    }
    input.count *= static_cast<size_t>(input.shape[d]);
  }
  return input;
}

// -0.75, -0.5, ... 0.75 again and again, or ones where the input is not of floats.
template <typename T>
Ort::Value example_of(const Input& input, bool floats) {
  Ort::AllocatorWithDefaultOptions allocator;
  Ort::Value value =
      Ort::Value::CreateTensor(allocator, input.shape.data(), input.shape.size(), input.type);
  T* values = value.GetTensorMutableData<T>();
  for (size_t i = 0; i < input.count; ++i) {
    const float step = (static_cast<float>(i % 7) - 3.0f) / 4.0f;
    values[i] = T(floats ? step : 1.0f);
  }
  return value;
}

Ort::Value example_of(const Input& input) {
  switch (input.type) {
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT: return example_of<float>(input, true);
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE: return example_of<double>(input, true);
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16: return example_of<Ort::Float16_t>(input, true);
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64: return example_of<int64_t>(input, false);
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32: return example_of<int32_t>(input, false);
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16: return example_of<int16_t>(input, false);
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8: return example_of<int8_t>(input, false);
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8: return example_of<uint8_t>(input, false);
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL: return example_of<bool>(input, false);
    default: throw std::runtime_error("input " + input.name + " is of a type not known here");
  }
}

template <typename T>
void print_floats(const Ort::Value& value, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    std::printf(" %.9g", static_cast<double>(static_cast<float>(value.GetTensorData<T>()[i])));
  }
}

void print_doubles(const Ort::Value& value, size_t count) {
  for (size_t i = 0; i < count; ++i) std::printf(" %.17g", value.GetTensorData<double>()[i]);
}

template <typename T>
void print_unsigned(const Ort::Value& value, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    std::printf(" %" PRIu64, static_cast<uint64_t>(value.GetTensorData<T>()[i]));
  }
}

template <typename T>
void print_integers(const Ort::Value& value, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    std::printf(" %" PRId64, static_cast<int64_t>(value.GetTensorData<T>()[i]));
  }
}

void print(const std::string& name, const Ort::Value& value) {
  const auto info = value.GetTensorTypeAndShapeInfo();
  std::printf("%s [", name.c_str());
  const std::vector<int64_t> shape = info.GetShape();
  for (size_t d = 0; d < shape.size(); ++d) std::printf(d ? ", %" PRId64 : "%" PRId64, shape[d]);
  std::printf("]\n");
  const size_t count = std::min(info.GetElementCount(), SHOWN);
  switch (info.GetElementType()) {
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT: print_floats<float>(value, count); break;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE: print_doubles(value, count); break;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16: print_floats<Ort::Float16_t>(value, count); break;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64: print_integers<int64_t>(value, count); break;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32: print_integers<int32_t>(value, count); break;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16: print_integers<int16_t>(value, count); break;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8: print_integers<int8_t>(value, count); break;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64: print_unsigned<uint64_t>(value, count); break;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32: print_unsigned<uint32_t>(value, count); break;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16: print_unsigned<uint16_t>(value, count); break;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8: print_unsigned<uint8_t>(value, count); break;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL: print_integers<bool>(value, count); break;
    default: std::printf(" values of a type not known here");
  }
  std::printf("\n");
}

void run(const std::string& path) {
  const Ort::Env environment;
  const Ort::SessionOptions options;
  Ort::Session session(environment, std::filesystem::path(path).c_str(), options);
  Ort::AllocatorWithDefaultOptions allocator;
  std::vector<std::string> names;
  std::vector<Ort::Value> feeds;
  for (size_t n = 0; n < session.GetInputCount(); ++n) {
    const Input input = input_of(session, n, allocator);
    names.push_back(input.name);
    feeds.push_back(example_of(input));
  }
  const size_t inputs = names.size();
  for (size_t n = 0; n < session.GetOutputCount(); ++n) {
    names.push_back(session.GetOutputNameAllocated(n, allocator).get());
  }
  std::vector<const char*> plain;
  for (const std::string& name : names) plain.push_back(name.c_str());
  const std::vector<Ort::Value> outputs =
      session.Run(Ort::RunOptions(), plain.data(), feeds.data(), inputs, plain.data() + inputs,
                  plain.size() - inputs);
  for (size_t n = 0; n < outputs.size(); ++n) print(names[inputs + n], outputs[n]);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string path = argc > 1 ? argv[1] : "../model.onnx";
  try {
    run(path);
  } catch (const std::exception& error) {  // Ort::Exception is one
    std::cerr << path << ": " << error.what() << '\n';
    return 1;
  }
  return 0;
}
