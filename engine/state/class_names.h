// The names of classes that a file of weights records.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace lockstep {

// Says where the names in `file` differ from `ours`: "class 1 is 'dog' here, 'ant' in FILE".
// Nothing where they are the same, or where either has none. Names are as printable() has them.
std::optional<std::string> other_class(const std::vector<std::string>& ours,
                                       const std::vector<std::string>& theirs,
                                       const std::string& file);

}  // namespace lockstep
