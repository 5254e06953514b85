#include "trainers/cli/compare_ranks.h"

#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "comm/handshake.h"
#include "core/cuda/device.h"
#include "core/digest.h"
#include "core/input_file.h"
#include "core/version.h"
#include "kernels/support/isa.h"
#include "kernels/support/onednn/version.h"
#include "trainers/debug/planted_fault.h"
#include "trainers/options/flag_table.h"
#include "trainers/report/errors.h"

namespace lockstep::trainers {
namespace {

std::string executable_digest() {
  const std::string bytes = contents_of("/proc/self/exe").value_or("");
  return to_hex(digest(std::as_bytes(std::span(bytes))));
}

std::string device_of_rank(Device device) {
  if (device == Device::kCpu) return "cpu";
  return cuda::device_properties().text();
}

}  // namespace

std::vector<comm::HandshakeField> program_fields() {
  using Kind = comm::HandshakeField::Kind;
  return {{Kind::kEnvironment, "version", std::string(version())},
          {Kind::kEnvironment, "program file", executable_digest()},
          {Kind::kEnvironment, "processor level", std::string(name_of(kernels::isa_level()))},
          {Kind::kEnvironment, "version of oneDNN", kernels::onednn_version()},
          {Kind::kEnvironment, "instruction set of oneDNN", kernels::onednn_isa()},
          {Kind::kEnvironment, "bf16 products", kernels::onednn_has_bf16() ? "native" : "in f32"}};
}

std::optional<Fault> begin_job(const Job& job) {
  std::optional<Fault> fault;
  if (job.transport != "threads") watch_processes(job.ranks);
  run_or_end_all_ranks(job.ranks, [&] {
    if (job.request.device == Device::kCuda) {
      cuda::select_device(job.launch.local_rank, job.launch.local_size);
    }
    const char* const text = std::getenv("LOCKSTEP_FAULT");  // NOLINT(concurrency-mt-unsafe)
    fault = parse_fault(text == nullptr ? "" : text);
  });
  using Kind = comm::HandshakeField::Kind;
  std::vector<comm::HandshakeField> fields = program_fields();
  for (const ResolvedFlag& flag : job.options.resolved()) {
    if (is_ranks_own(*find_flag("--" + flag.name))) continue;
    fields.push_back({Kind::kArgument, "--" + flag.name, flag.value});
  }
  fields.push_back({Kind::kEnvironment, "device", device_of_rank(job.request.device)});
  comm::handshake(job.ranks, fields);
  return fault;
}

}  // namespace lockstep::trainers
