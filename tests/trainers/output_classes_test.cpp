#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "data/image_folder.h"
#include "data/synthetic.h"
#include "tests/support/image_files.h"
#include "tests/support/temp_dir.h"
#include "trainers/loop/training_data.h"
#include "trainers/report/evaluation_record.h"

namespace lockstep::trainers::output_classes_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Names = std::vector<std::string>;

Names names_in(const std::string& text) {
  const testing::TempDir dir;
  std::ofstream(dir / "names.txt") << text;
  return read_class_names(dir / "names.txt");
}

std::string fault_of(const std::string& text) {
  try {
    names_in(text);
  } catch (const DataError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(ClassNames, AreTheLinesOfAFile) {
  EXPECT_THAT(names_in("b\ntabby cat\n\xC3\xBC\n"), ElementsAre("b", "tabby cat", "\xC3\xBC"));
  EXPECT_THAT(names_in("\xEF\xBB\xBF"
                       "b\r\na"),
              ElementsAre("b", "a"));
  EXPECT_THAT(fault_of(""), HasSubstr(" names no class"));
  EXPECT_THAT(fault_of("a\n\nb\n"), HasSubstr(" has an empty name"));
  EXPECT_THAT(fault_of("a\nb\na\n"), HasSubstr(" has 'a' twice"));
  EXPECT_THROW(read_class_names("/nowhere/names.txt"), DataError);
  EXPECT_THROW(read_class_names("/"), DataError);
  EXPECT_THROW(read_class_names("/dev/zero"), DataError);
}

// A record has names that can be printed; folders may have any.
TEST(OutputClasses, HaveTheNamesOfFolders) {
  EvaluationRecord recorded{.class_names = {"a\\x5cb", "\\xc3\\xbc", "plain"}};
  const Names none;
  EXPECT_THAT((OutputClasses{"F", recorded, none}.names()),
              ElementsAre("a\\b", "\xC3\xBC", "plain"));
  const Names given = {"x", "y"};
  EXPECT_EQ((OutputClasses{"F", recorded, given}.names()), given);
  recorded.class_names = {"a", "a"};
  EXPECT_THROW((OutputClasses{"F", recorded, none}.names()), CheckpointError);
}

// Weights with `outputs` outputs.
class Evaluated : public ::testing::Test {
 protected:
  Evaluated() {
    for (const char* path : {"b/1.png", "c/1.png"}) {
      testing::write_file(dir_ / path, testing::image_file("png_rgb"));
    }
  }

  // The notes, or the error.
  Names check(int64_t outputs, const Names& recorded, const Names& given = {}) const {
    const EvaluationRecord record{.flags = recorded_flags_, .class_names = recorded};
    const OutputClasses classes{"F", record, given};
    const std::string count = std::to_string(outputs);
    try {
      const data::ImageFolder photos("photos/val", dir_.path(), {.classes = classes.names()});
      const EvaluationRecord now{.flags = {{"num-classes", count}},
                                 .class_names = photos.class_names()};
      return classes.check(now, photos);
    } catch (const DataError& error) {
      return {error.what(), error.hint()};
    }
  }

  testing::TempDir dir_;
  Texts recorded_flags_;
};

TEST_F(Evaluated, FoldersAreComparedWithTheOutputsOfTheirNames) {
  EXPECT_THAT(check(3, {"a", "b", "c"}), IsEmpty());
  EXPECT_THAT(check(2, {"c", "b"}), IsEmpty());
  EXPECT_THAT(check(5, {"a", "b", "c"}), IsEmpty()) << "trained with more outputs than classes";
  EXPECT_THAT(check(3, {}, {"a", "b", "c"}), IsEmpty());
  EXPECT_THAT(check(3, {"a", "b", "c"}, {"c", "b", "a"}),
              ElementsAre("note: class 0 is 'c' here, 'a' in F; --class-names is used"));
  EXPECT_THAT(check(2, {"a", "b"}),
              ElementsAre(HasSubstr("no class has the name of the folder"), HasSubstr("rename")));
  EXPECT_THAT(check(3, {}, {"b", "c"}),
              ElementsAre("--class-names names 2 classes, and there are 3 outputs",
                          HasSubstr(": 3 of them")));
}

TEST_F(Evaluated, FoldersAreComparedByPlaceOnlyWhereThereAreAsManyOutputs) {
  EXPECT_THAT(check(2, {}), ElementsAre(HasSubstr("F records no names of classes")));
  for (const int64_t outputs : {1, 3, 1000}) {
    for (const Texts& flags : {Texts{}, Texts{{"num-classes", std::to_string(outputs)}}}) {
      recorded_flags_ = flags;
      EXPECT_THAT(check(outputs, {}),
                  ElementsAre(HasSubstr("outputs are compared with the 2 classes of photos/val"),
                              HasSubstr("--class-names FILE")));
    }
  }
}

TEST(OutputClasses, OfImagesWithoutFolders) {
  const data::Synthetic ten({.images = 4, .classes = 10, .shape = {3, 8, 8}});
  EvaluationRecord recorded;
  const Names none;
  const auto notes = [&](const char* outputs, const Names& given) {
    return OutputClasses{"F", recorded, given}.check({.flags = {{"num-classes", outputs}}}, ten);
  };
  EXPECT_THAT(notes("10", none), IsEmpty());
  EXPECT_THROW(notes("12", none), DataError);
  recorded.flags["num-classes"] = "12";
  EXPECT_THAT(notes("12", none), IsEmpty()) << "trained with more outputs than labels";
  recorded.class_names = {"a", "b"};
  EXPECT_THROW(notes("12", none), DataError);
  EXPECT_THROW(notes("2", {"a", "b"}), UsageError);
}

TEST(AbsentClasses, AreNoted) {
  const testing::TempDir dir;
  testing::write_file(dir / "b/1.png", testing::image_file("png_rgb"));
  const auto note = [&](const Names& classes) {
    return note_on_absent_classes(
        data::ImageFolder("photos/val", dir.path(), {.classes = classes}));
  };
  EXPECT_EQ(note({"b"}), std::nullopt);
  EXPECT_EQ(note({"a", "b"}), "note: photos/val has images of 1 of 2 classes, none of a");
  EXPECT_EQ(note({"b", "c", "d"}),
            "note: photos/val has images of 1 of 3 classes, none of c and 1 more");
}

}  // namespace
}  // namespace lockstep::trainers::output_classes_test
