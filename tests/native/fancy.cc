// The operator Fancy of the domain mylib.example: y = x * sigmoid(scale * x), for float32 on the CPU.
//
//   g++ -std=c++17 -O2 -shared -fPIC -Wl,--build-id=none -I ORT_INCLUDE_DIR fancy.cc -o libfancy.so

#define ORT_API_MANUAL_INIT
#include <onnxruntime_lite_custom_op.h>

#include <cmath>
#include <memory>

struct Fancy {
  float scale;
  Fancy(const OrtApi*, const OrtKernelInfo* info)
      : scale(Ort::ConstKernelInfo(info).GetAttribute<float>("scale")) {}

  Ort::Status Compute(const Ort::Custom::Tensor<float>& x, Ort::Custom::Tensor<float>& y) {
    const float* from = x.Data();
    float* to = y.Allocate(x.Shape());
    for (int64_t i = 0; i < x.NumberOfElement(); ++i) {
      to[i] = from[i] / (1.0f + std::exp(-scale * from[i]));
    }
    return Ort::Status(nullptr);
  }
};

extern "C" OrtStatus* ORT_API_CALL RegisterCustomOps(OrtSessionOptions* options,
                                                     const OrtApiBase* base) {
  Ort::InitApi(base->GetApi(ORT_API_VERSION));
  static const std::unique_ptr<Ort::Custom::OrtLiteCustomOp> fancy{
      Ort::Custom::CreateLiteCustomOp<Fancy>("Fancy", "CPUExecutionProvider")};
  static Ort::CustomOpDomain domain = [] {
    Ort::CustomOpDomain made{"mylib.example"};
    made.Add(fancy.get());
    return made;
  }();
  Ort::UnownedSessionOptions(options).Add(domain);
  return nullptr;
}
