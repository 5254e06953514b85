// Reads run.json back.
#pragma once

#include <string>

#include "trainers/report/run_record.h"

namespace lockstep::trainers {

// Parses the record that to_json() wrote, by this version or an older one of the same schema.
// Members that an older version lacks keep their defaults. `file` is named in errors.
// Errors: DataError for text that is no run.json, and for another schema version.
RunRecord run_record_of(const std::string& json, const std::string& file);

}  // namespace lockstep::trainers
