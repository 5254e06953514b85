#include "inspect/cli/ranks_command.h"

#include <string>

#include <fmt/core.h>

#include "comm/connect.h"
#include "comm/die.h"
#include "core/cuda/device.h"
#include "core/error.h"
#include "core/words.h"
#include "trainers/config/rank_machine.h"
#include "trainers/report/errors.h"
#include "trainers/report/print.h"

namespace lockstep::trainers {

namespace {

comm::Connection connect_ranks(const comm::LaunchOptions& options, std::chrono::seconds timeout) {
  const comm::Launch launch = comm::read_launch(options);
  try {
    return comm::connect(
        launch,
        {.rendezvous_timeout = timeout,
         .tell = [](const std::string& text) { print_line(stderr, "note: " + text); },
         .lost_at_end = [](const Error& error) { comm::die(error); }});
  } catch (const Error& error) {
    if (launch.place) throw with_meeting_advice(error);
    throw;
  }
}

}  // namespace

int run_ranks(const comm::LaunchOptions& options, std::chrono::seconds rendezvous_timeout) {
  const comm::Connection connection = connect_ranks(options, rendezvous_timeout);
  try {
    RankPlace place = this_place();
    place.local_rank = connection.launch.local_rank;
    place.device = cuda::visible_devices() > 0 ? "cuda" : "cpu";
    const std::vector<RankPlace> places = gather_places(*connection.ranks, place);
    if (connection.ranks->rank() == 0) {
      std::string text;
      for (const std::string& line : rank_table(places)) text += line + "\n";
      if (places.size() > 1) {
        text += fmt::format("they exchange data over {}\n", connection.transport);
      }
      print(stdout, without_controls(text));
    }
    connection.ranks->barrier();
    return 0;
  } catch (const Error& error) {
    comm::die(error);
  }
}

}  // namespace lockstep::trainers
