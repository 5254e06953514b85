#include "core/cuda/python_packages.h"

#include <array>
#include <cstdlib>

#include <dlfcn.h>
#include <gmock/gmock.h>

#include "tests/support/temp_dir.h"

namespace lockstep::python_packages_test {
namespace {

using ::testing::ElementsAre;
using testing::TempDir;
namespace fs = std::filesystem;

// A library that loads under any name: this program has it already.
void install(const fs::path& file) {
  Dl_info libc{};
  ASSERT_NE(dladdr(reinterpret_cast<void*>(&dlopen), &libc), 0);
  fs::create_directories(file.parent_path());
  fs::create_symlink(fs::canonical(libc.dli_fname), file);
}

TEST(PythonPackages, LibrariesAreFoundInPackagesOfAnActivePython) {
  const TempDir dir;
  const std::string in_venv = dir / "venv/lib/python3.11/site-packages/nvidia/cudnn/lib/libx.so.9";
  const std::string users = dir / "user/lib/python3.12/site-packages/nvidia/cu13/lib/libx.so.9";
  install(in_venv);
  install(users);
  install(dir / "venv/lib/python3.11/site-packages/other/cudnn/lib/libx.so.9");
  const std::array<fs::path, 3> prefixes = {dir / "absent", dir / "venv", dir / "user"};
  EXPECT_THAT(cuda::find_in_packages(prefixes, "libx.so.9"), ElementsAre(in_venv, users));
  EXPECT_THAT(cuda::find_in_packages(prefixes, "libx.so.8"), ElementsAre());
}

TEST(PythonPackages, WhatTheLoaderDoesNotFindIsOpenedThere) {
  const TempDir dir;
  install(dir / "lib/python3.11/site-packages/nvidia/cudnn/lib/lockstep_only.so.9");
  for (const char* variable : {"VIRTUAL_ENV", "PYTHONUSERBASE"}) {
    unsetenv("VIRTUAL_ENV");
    unsetenv("PYTHONUSERBASE");
    EXPECT_EQ(cuda::open_library("lockstep_only.so.9"), nullptr);
    EXPECT_NE(dlerror(), nullptr);
    setenv(variable, dir.path().c_str(), 1);
    EXPECT_NE(cuda::open_library("lockstep_only.so.9"), nullptr) << variable;
  }
  unsetenv("PYTHONUSERBASE");
}

}  // namespace
}  // namespace lockstep::python_packages_test
