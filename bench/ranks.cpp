#include "bench/ranks.h"

#include <exception>

#include <fmt/ranges.h>

#include "comm/die.h"
#include "comm/handshake.h"
#include "core/error.h"
#include "core/version.h"
#include "trainers/report/errors.h"

namespace lockstep::bench {
namespace {

void compare_ranks(Communicator& peers, const std::vector<std::string>& arguments) {
  using enum comm::HandshakeField::Kind;
  const std::vector<comm::HandshakeField> fields = {
      {kArgument, "arguments", fmt::format("{}", fmt::join(arguments, " "))},
      {kEnvironment, "version", std::string(version())},
  };
  comm::handshake(peers, fields);
}

}  // namespace

int run_on_ranks(const std::vector<std::string>& arguments,
                 const std::function<RanksRequest()>& request,
                 const std::function<void(const comm::Launch&, const comm::Connection&)>& measure) {
  comm::Launch launch;
  comm::Connection connection;
  try {
    launch = comm::read_launch();
    RanksRequest asked = request();
    if (!asked.help.empty()) {
      if (launch.rank == 0) fmt::print("{}", asked.help);
      return trainers::end_output(0);
    }
    asked.connect.lost_at_end = [](const Error& error) { comm::die(error); };
    connection = comm::connect(launch, asked.connect);
  } catch (const std::exception& error) {
    return trainers::report_error(error);
  }
  try {
    compare_ranks(*connection.ranks, arguments);
    measure(connection.launch, connection);
    return trainers::end_output(0);
  } catch (const CommError& error) {  // each rank knows something else of a lost peer
    comm::die(
        static_cast<ExitCode>(trainers::report_error(error, trainers::ErrorScope::kThisRank)));
  } catch (const std::exception& error) {
    comm::die(static_cast<ExitCode>(trainers::report_error(error)));
  }
}

}  // namespace lockstep::bench
