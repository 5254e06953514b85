#include "inspect/cli/doctor_command.h"

#include "inspect/doctor/machine.h"

namespace lockstep::trainers {

int run_doctor(std::ostream& out, bool ranks_alone) {
  const Machine machine = read_machine();
  if (ranks_alone) {
    out << machine.suggested_ranks() << "\n";
  } else {
    out << describe(machine);
  }
  return machine.can_train() ? 0 : 1;
}

}  // namespace lockstep::trainers
