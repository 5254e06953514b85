// The work by which scripts/machine_speed.sh measures a machine: headers and templates for the
// compiler, a matrix product for the processor. A change here voids the figures of earlier runs.
#include <array>
#include <cstdio>
#include <functional>
#include <map>
#include <regex>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace {

constexpr int kSize = 512, kRepeats = 64;

template <int... Numbers>
double visit_all(std::integer_sequence<int, Numbers...>) {
  using Any = std::variant<std::array<float, Numbers + 1>...>;
  std::map<std::string, std::function<double(const Any&)>> functions;
  (functions.emplace(std::to_string(Numbers),
                     [](const Any& any) {
                       return std::visit([](const auto& a) { return a.size() + 0.5 * Numbers; },
                                         any);
                     }),
   ...);
  double sum = 0;
  for (const auto& [name, function] : functions)
    sum += function(Any{}) + std::regex_match(name, std::regex("[0-9]+"));
  return sum;
}

double products() {
  std::vector<float> a(kSize * kSize, 0.5F), b(kSize * kSize, 0.25F), c(kSize * kSize, 0.0F);
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    for (int i = 0; i < kSize; ++i) {
      for (int k = 0; k < kSize; ++k) {
        for (int j = 0; j < kSize; ++j) c[i * kSize + j] += a[i * kSize + k] * b[k * kSize + j];
      }
    }
    a[repeat] = c[repeat];
  }
  return c.back();
}

}  // namespace

int main() {
  std::printf("%g\n", visit_all(std::make_integer_sequence<int, 10>()) + products());
}
