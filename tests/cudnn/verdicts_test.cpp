// The emulated machine's cuDNN takes and refuses what real cuDNN takes and refuses, at the same
// call and with the same status. Both plan for an H200 that is not here.
#include <cstdlib>

#include <dlfcn.h>
#include <gtest/gtest.h>

#include "inspect/plan/gpu_card.h"
#include "tests/cudnn/graph_spec.h"
#include "tests/emulation/runtime/libraries.h"

namespace lockstep::testing::verdicts_test {
namespace {

template <class Find>
CudnnFunctions functions(Find&& find) {
  CudnnFunctions found;
  const auto set = [&](auto& to, const char* name) {
    to = reinterpret_cast<std::remove_reference_t<decltype(to)>>(find(name));
    ASSERT_NE(to, nullptr) << name;
  };
  set(found.create, "cudnnBackendCreateDescriptor");
  set(found.destroy, "cudnnBackendDestroyDescriptor");
  set(found.set, "cudnnBackendSetAttribute");
  set(found.get, "cudnnBackendGetAttribute");
  set(found.finalize, "cudnnBackendFinalize");
  return found;
}

CudnnFunctions real() {
  static void* const library = dlopen("libcudnn.so.9", RTLD_NOW | RTLD_LOCAL);
  return functions([](const char* name) { return dlsym(library, name); });
}
CudnnFunctions fake() {
  setenv("LOCKSTEP_EMULATION_CUDNN", "on", 1);
  const emulation::FakeLibrary* const library = emulation::find_library("libcudnn.so.9");
  return functions([&](const char* name) { return library->symbol(name); });
}

struct Change {
  const char* name;
  void (*apply)(GraphSpec& spec);
  bool is_stricter = false;  // the fake has no engine where cuDNN's would compute something else
};

constexpr Change kChanges[] = {
    {"none", [](GraphSpec&) {}},
    {"out h", [](GraphSpec& s) { s.out.extents[2] = 7; }},
    {"out n", [](GraphSpec& s) { s.out.extents[0] = 3; }},
    {"out k", [](GraphSpec& s) { s.out.extents[1] = 16; }},
    {"channels", [](GraphSpec& s) { s.weight.extents[1] = 12; }},
    {"2 groups", [](GraphSpec& s) { s.weight.extents[1] = 8; }},
    {"4 groups", [](GraphSpec& s) { s.weight.extents[1] = 4; }},
    {"groups that outputs are not divided by",
     [](GraphSpec& s) {
       s.weight.extents[1] = 4;
       s.weight.extents[0] = s.out.extents[1] = 30;
     }},
    {"stride 2", [](GraphSpec& s) { s.strides = {2, 2}; }},
    {"stride 2, half",
     [](GraphSpec& s) {
       s.strides = {2, 2};
       s.out.extents[2] = s.out.extents[3] = 4;
     }},
    {"stride 0", [](GraphSpec& s) { s.strides = {0, 0}; }},
    {"dilation 0", [](GraphSpec& s) { s.dilations = {0, 0}; }},
    {"dilation 2", [](GraphSpec& s) { s.dilations = {2, 2}; }},
    {"pad -1", [](GraphSpec& s) { s.pads = {-1, -1}; }},
    {"post pad 0",
     [](GraphSpec& s) {
       s.post_pads = {0, 0};
       s.out.extents[2] = s.out.extents[3] = 7;
     }},
    {"one stride", [](GraphSpec& s) { s.strides = {1}; }},
    {"3 dimensions", [](GraphSpec& s) { s.spatial_dimensions = 3; }},
    {"compute f16", [](GraphSpec& s) { s.compute = CUDNN_DATA_HALF; }, true},
    {"compute f64", [](GraphSpec& s) { s.compute = CUDNN_DATA_DOUBLE; }},
    {"turned filters", [](GraphSpec& s) { s.mode = CUDNN_CONVOLUTION; }, true},
    {"one uid twice", [](GraphSpec& s) { s.out.uid = 1; }, true},
    {"weight int8", [](GraphSpec& s) { s.weight.type = CUDNN_DATA_INT8; }},
    {"alignment 0", [](GraphSpec& s) { s.in.alignment = 0; }},
    {"alignment 3", [](GraphSpec& s) { s.in.alignment = 3; }},
    {"no images", [](GraphSpec& s) { s.in.extents[0] = 0; }},
    {"stride -1", [](GraphSpec& s) { s.in.strides = {-1, 1, 16, 128}; }},
    {"3 strides", [](GraphSpec& s) { s.in.strides = {1024, 1, 128}; }},
    {"H and W swapped", [](GraphSpec& s) { s.in.strides = {1024, 1, 16, 128}; }},
    {"virtual out", [](GraphSpec& s) { s.out.is_virtual = true; }, true},
    {"alpha 2", [](GraphSpec& s) { s.alpha = 2; }, true},
    {"beta 1", [](GraphSpec& s) { s.beta = 1; }, true},
    {"5 channels", [](GraphSpec& s) { s.in.extents[1] = s.weight.extents[1] = 5; }},
};
constexpr Change kForwardChanges[] = {
    {"bias", [](GraphSpec& s) { s.add_bias(); }},
    {"sums", [](GraphSpec& s) { s.add_sums(); }},
    {"norm", [](GraphSpec& s) { s.add_norm(); }},
    {"sums, norm", [](GraphSpec& s) { s.add_sums(), s.add_norm(); }},
    {"bias, sums", [](GraphSpec& s) { s.add_bias(), s.add_sums(); }},
    {"bias size", [](GraphSpec& s) { s.add_bias(), s.bias[0].extents[1] = 16; }},
    {"bias in memory", [](GraphSpec& s) { s.add_bias(), s.bias[1].is_virtual = false; }},
    {"sums f16", [](GraphSpec& s) { s.add_sums(), s.sums[0].type = CUDNN_DATA_HALF; }},
    {"sums, 4 channels",
     [](GraphSpec& s) {
       s.weight.extents[0] = s.out.extents[1] = 4;
       s.add_sums();
     }},
};

void expect_same(const GraphSpec& spec, bool is_stricter, const std::string& what) {
  static const CudnnFunctions ours = fake(), theirs = real();
  static const std::string card = trainers::find_gpu("h200").cudnn_properties;
  const Verdict want = verdict_of(theirs, spec, card), got = verdict_of(ours, spec, card);
  const bool is_allowed = is_stricter && want.step == "plan" && got.step == "no engine";
  EXPECT_TRUE(got == want || is_allowed) << what << ": cuDNN " << want.step << ' ' << want.status
                                         << ", emulated " << got.step << ' ' << got.status;
}

TEST(EmulatedVerdicts, AreRealCudnns) {
  for (const auto type : {CUDNN_DATA_FLOAT, CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16}) {
    for (const auto pass :
         {SpecPass::kForward, SpecPass::kBackwardData, SpecPass::kBackwardWeight}) {
      for (const Change& change : kChanges) {
        GraphSpec spec(pass, type);
        change.apply(spec);
        expect_same(spec,
                    change.is_stricter,
                    fmt::format("{}, pass {}, type {}",
                                change.name,
                                static_cast<int>(pass),
                                static_cast<int>(type)));
      }
    }
    for (const Change& change : kForwardChanges) {
      GraphSpec spec(SpecPass::kForward, type);
      change.apply(spec);
      expect_same(spec, change.is_stricter, change.name);
    }
    for (const auto pass : {SpecPass::kBackwardData, SpecPass::kBackwardWeight}) {
      GraphSpec spec(pass, type);
      spec.add_norm();
      expect_same(spec, false, "norm of a gradient");
    }
  }
}

}  // namespace
}  // namespace lockstep::testing::verdicts_test
