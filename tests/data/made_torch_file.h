// Files that torch.save would not write, made byte by byte.
#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <span>
#include <string>

#include <gtest/gtest.h>

#include "core/error.h"
#include "data/torch_file/torch_file.h"
#include "data/torch_file/zip_writer.h"
#include "tests/support/golden.h"
#include "tests/support/temp_dir.h"

namespace lockstep::data::made_torch_file {

namespace fs = std::filesystem;
using namespace std::string_literals;
using testing::golden_folder, testing::read_text, testing::TempDir, testing::write_text;

inline std::span<const std::byte> bytes(const std::string& text) {
  return std::as_bytes(std::span(text));
}

inline std::string u32(uint32_t value) {
  std::string text(4, '\0');
  std::memcpy(text.data(), &value, 4);
  return text;
}
inline std::string text(const std::string& value) {
  return "X" + u32(static_cast<uint32_t>(value.size())) + value;
}
inline std::string number(int32_t value) {
  return "J" + u32(static_cast<uint32_t>(value));
}

// Fields of the pickle of a tensor with one axis; pickled() gives its bytes.
struct PickledVector {
  std::string type = "torch\nFloatStorage";
  std::string key = "0";
  int32_t stored = 2;
  std::string offset = number(0);
  std::string extent = number(2);
  std::string stride = number(1);

  std::string pickled() const {
    return "ctorch._utils\n_rebuild_tensor_v2\n((" + text("storage") + "c" + type + "\n" +
           text(key) + text("cpu") + number(stored) + "tQ" + offset + extent + "\x85" + stride +
           "\x85\x89" + "ccollections\nOrderedDict\n)RtR";
  }
};

inline std::string dict_of(const std::string& items) {
  return "\x80\x02}(" + items + "u.";
}

class MadeTorchFile : public ::testing::Test {
 protected:
  // Returns the result of reading a file with this pickle. Storage "0" holds 1 and 2 in f32.
  std::string read(const std::string& pickle, const std::string& storage = kTwo) {
    write_zip(file_, {{"a/data.pkl", bytes(pickle)}, {"a/data/0", bytes(storage)}});
    return read();
  }
  std::string read() {
    try {
      read_torch_file(file_);
    } catch (const CheckpointError& error) {
      return format_error(error);
    }
    return "read";
  }
  std::string read(const PickledVector& vector) {
    return read(dict_of(text("w") + vector.pickled()));
  }
  // Returns the result of reading a golden file after `change` has modified its bytes.
  template <class Change>
  std::string read_changed(Change&& change) {
    std::string content = read_text(golden_folder() / "torch_files/state_dict.pt");
    change(content);
    write_text(file_, content);
    return read();
  }

  inline static const std::string kTwo = "\0\0\x80\x3f\0\0\0\x40"s;
  const TempDir dir_;
  const fs::path file_ = dir_ / "w.pt";
};

}  // namespace lockstep::data::made_torch_file
