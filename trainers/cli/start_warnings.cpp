#include "trainers/cli/start_warnings.h"

#include "kernels/support/onednn/version.h"
#include "trainers/config/rank_machine.h"
#include "trainers/machine/run_findings.h"
#include "trainers/report/flag_advice.h"

namespace lockstep::trainers {

void warn_at_start(const Job& job,
                   const RunRequest& request,
                   const BatchDivision& batch,
                   int64_t dataset_images,
                   const LibraryVersions& libraries,
                   Console& console) {
  const bool computes = !request.lr_dry_run && !request.explain_precision;
  std::vector<Finding> findings;
  if (computes && request.device == Device::kCuda) {
    const GpuShares shares = gather_gpu_shares(job.ranks, this_place().host);
    findings = share_findings(shares, std::string(name_of(job.options.program)));
  }
  if (job.ranks.rank() != 0) return;
  if (computes) {
    for (const Finding& finding : run_findings(request, job.options, libraries)) {
      findings.push_back(finding);
    }
  }
  for (const Finding& finding : findings) console.warn(start_line(finding));
  if (computes && request.device == Device::kCpu) {
    const int64_t images = batch.images / (batch.ranks * batch.micro_steps);
    for (const std::string& note :
         notes_on(request.precision, images, kernels::onednn_has_bf16())) {
      console.warn(note);
    }
  }
  if (request.evaluate) return;
  const HostShare host = host_share(job.launch.local_size);
  for (const std::string& line : run_advice(request, batch, dataset_images, host)) {
    console.warn(line);
  }
}

}  // namespace lockstep::trainers
