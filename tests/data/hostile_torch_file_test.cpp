// Files that torch.save would not write.

#include <cstring>
#include <span>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/torch_file/pickled_tensor.h"
#include "tests/data/made_torch_file.h"

namespace lockstep::data::hostile_torch_file_test {
namespace {

using namespace std::string_literals;
using ::testing::AllOf;
using namespace made_torch_file;
using ::testing::HasSubstr;

using HostileTorchFile = MadeTorchFile;

TEST_F(HostileTorchFile, AGoodOneIsRead) {
  EXPECT_EQ(read(PickledVector{}), "read");
  const Tensor tensor = read_torch_file(file_).tensors.at("w");
  EXPECT_EQ(tensor.span<float>()[1], 2);
}

TEST_F(HostileTorchFile, NoCodeIsRun) {
  const std::string touch = (dir_ / "touched").string();
  EXPECT_THAT(read("\x80\x02"s + "cos\nsystem\n(" + text("touch " + touch) + "tR."),
              AllOf(HasSubstr("it holds a 'os.system'"), HasSubstr("no code is run")));
  EXPECT_THAT(read("\x80\x02"s + "cbuiltins\neval\n(" + text("1") + "tR."),
              HasSubstr("'builtins.eval'"));
  EXPECT_FALSE(fs::exists(touch));
  EXPECT_THAT(read("\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x01t\x85R."s),
              HasSubstr("it holds a 'os.system'"));
  EXPECT_THAT(read("\x80\x02(ios\nsystem\n."), HasSubstr("opcode 0x69"));
  EXPECT_THAT(read("\x80\x06N."), HasSubstr("protocol 6, 2 to 5 are read"));
  EXPECT_THAT(read("\x80\x02"
                   "ctorch\nload\n)R."),
              HasSubstr("'torch.load'"));
  EXPECT_THAT(read("\x80\x02"
                   "ctorch\nFloatStorage\n)R."),
              HasSubstr("it holds a 'torch.FloatStorage'"));
}

// What other programs keep beside the weights, as Python's pickler writes it with protocols 2 to 5.
TEST_F(HostileTorchFile, WhatLiesBesideTheWeightsIsOfNoConcern) {
  const std::string name = "cargparse\nNamespace\n";
  for (const std::string& other :
       {"ccollections\nCounter\n}(K\x1eK\x01u\x85R"s,
        "\x8a\x09\0\0\0\0\0\0\0\0\x01"s,          // 2**64
        "\x8b\x0a\0\0\0\0\0\0\0\0\0\0\0\0\x40"s,  // 2**78
        "ctorch\nSize\nK\x01\x85\x85R"s,
        "ctorch\nfloat32\n"s,
        "c__builtin__\nset\n]K\x01"
        "a\x85R"s,
        "\x8f\x94(K\x01\x90"s,  // a set of protocol 4
        "(K\x01\x91"s,          // a frozenset
        "C\x02"
        "ab"s,
        "B\x02\0\0\0"
        "ab"s,
        "\x96\x02\0\0\0\0\0\0\0"
        "ab"s,
        "U\x02"
        "ab"s,
        "\x8d\x02\0\0\0\0\0\0\0"
        "ab"s,
        name + ")\x81}" + text("lr") + "K\x01sb",
        name + ")}\x92",
        "\x8c\x01m\x8c\x01n\x93)\x81"s,
        "ccollections\ndefaultdict\nc__builtin__\nlist\n\x85RK\x01"
        "0K\x01K\x02s"s,
        "ccollections\ndeque\n)R(K\x01"
        "e"s,
        "cm\nDict\n)\x81(" + text("k") + "Nu",
        "cm\nSelf\n)\x81q\x07}" + text("me") + "h\x07sb",
        "cbuiltins\ngetattr\ncm\nC\n" + text("f") + "\x86R)R",
        PickledVector{.type = "torch\nComplexFloatStorage"}.pickled(),
        PickledVector{.extent = number(1'000'000'000), .stride = number(0)}.pickled(),
        "ctorch._utils\n_rebuild_qtensor\n(K\x01tR"s,
        "K\x01"
        "0K\x02"s}) {
    const std::string items = text("other") + other + text("state_dict") + "}(" + text("w") +
                              PickledVector{}.pickled() + "u";
    EXPECT_EQ(read(dict_of(items)), "read") << ::testing::PrintToString(other);
    EXPECT_THAT(read(dict_of(text("w") + other)), HasSubstr("'w' "))
        << ::testing::PrintToString(other);
  }
}

TEST_F(HostileTorchFile, TensorsAreFoundInTheirWrappings) {
  const std::string storage =
      "(" + text("storage") + "ctorch\nFloatStorage\n" + text("0") + text("cpu") + number(2) + "tQ";
  const std::string arguments = "(" + storage + number(0) + number(2) + "\x85" + number(1) +
                                "\x85\x89}}" + text("neg") + "\x88st";
  const std::string negated = "ctorch._utils\n_rebuild_tensor_v2\n" + arguments + "R";
  const std::string parameter =
      "ctorch._utils\n_rebuild_parameter_with_state\n(" + negated + "\x88}}tR";
  const std::string of_type =
      "ctorch._tensor\n_rebuild_from_type_v2\n(ctorch._utils\n_rebuild_tensor_v2\n"
      "ctorch\nTensor\n" +
      arguments + "}tR";
  for (const std::string& tensor : {negated, parameter, of_type}) {
    ASSERT_EQ(read(dict_of(text("w") + tensor)), "read") << tensor;
    EXPECT_EQ(read_torch_file(file_).tensors.at("w").span<float>()[1], -2) << tensor;
  }
}

TEST_F(HostileTorchFile, WhatIsNoTensorOfTheNetworkIsSkippedOrNamed) {
  const std::string weight = text("w") + PickledVector{}.pickled();
  EXPECT_EQ(read(dict_of(weight + text("a._extra_state") + "cm\nC\n)R")), "read");
  EXPECT_EQ(read(dict_of(weight + text("none") + "N")), "read");
  EXPECT_EQ(read(dict_of(weight + text("bn.num_batches_tracked") + "K\x07")), "read");
  EXPECT_EQ(*read_torch_file(file_).tensors.at("bn.num_batches_tracked").data<int64_t>(), 7);
  EXPECT_THAT(read(dict_of(weight + text("epoch") + "K\x07")),
              HasSubstr("its 'epoch' is a number, not a tensor"));
  EXPECT_THAT(
      read(dict_of(text("model") + "cm\nNet\n)R" + text("epoch") + "K\x07")),
      AllOf(HasSubstr("it holds a 'm.Net' in place of a state_dict"), HasSubstr("no code is run")));
}

TEST_F(HostileTorchFile, BrokenPicklesAreRefused) {
  const std::string good = dict_of(text("w") + PickledVector{}.pickled());
  for (size_t length = 0; length < good.size(); ++length) {
    EXPECT_THAT(read(good.substr(0, length)), HasSubstr("cannot read weights")) << length;
  }
  for (const char* pickle : {"\x80\x02.",
                             "\x80\x02t.",
                             "\x80\x02\x85.",
                             "\x80\x02R.",
                             "\x80\x02)R.",
                             "\x80\x02))R.",
                             "\x80\x02NN.",
                             "\x80\x02(N.",
                             "\x80\x02h\x07.",
                             "\x80\x02q\x07.",
                             "\x80\x02)NNs.",
                             "\x80\x02}(Nu.",
                             "\x80\x02)Na.",
                             "\x80\x02)Nb.",
                             "\x80\x02)Q.",
                             "\x80\x02NQ.",
                             "\x80\x02X\xff\xff\xff\xff."}) {
    EXPECT_THAT(read(pickle), HasSubstr("cannot read weights")) << pickle;
  }
}

TEST_F(HostileTorchFile, DeepAndCircularValuesCostNothing) {
  EXPECT_THAT(read("\x80\x02)" + std::string(900'000, '\x85') + "."),
              HasSubstr("it holds a tuple"));
  EXPECT_THAT(read("\x80\x02)" + std::string(1'000'001, '\x85') + "."),
              HasSubstr("more than 1000000 values"));
  EXPECT_THAT(read("\x80\x02]q\x01h\x01" + "a."s), HasSubstr("it holds a list"));
  EXPECT_THAT(read(dict_of(text("w") + "}q\x01" + text("w") + "h\x01s")),
              HasSubstr("its 'w' is a dict"));
  EXPECT_THAT(read("\x80\x02}q\x01" + text("model") + "h\x01s."),
              HasSubstr("its 'model' is a dict"));
}

// The file holds a long key or shape once, and a few bytes request each further copy.
TEST_F(HostileTorchFile, LongKeysAndShapesAreRefusedBeforeTheyAreCopied) {
  EXPECT_THAT(read(PickledVector{.key = std::string(257, '0')}),
              HasSubstr("a storage's key that is too long"));
  std::string nine = "(";
  for (int i = 0; i < 9; ++i) nine += number(1);
  const std::string tensor = "ctorch._utils\n_rebuild_tensor_v2\n((" + text("storage") +
                             "ctorch\nFloatStorage\n" + text("0") + text("cpu") + number(2) + "tQ" +
                             number(0) + nine + "t" + nine + "t\x89" +
                             "ccollections\nOrderedDict\n)RtR";
  EXPECT_THAT(read(dict_of(text("w") + tensor)), HasSubstr("a tensor of more than 8 axes"));
}

TEST_F(HostileTorchFile, TensorsStayInTheirStorage) {
  EXPECT_THAT(read(PickledVector{.offset = number(1)}), HasSubstr("'w' claims elements"));
  EXPECT_THAT(read(PickledVector{.offset = number(-1)}), HasSubstr("'w' claims elements"));
  EXPECT_THAT(read(PickledVector{.extent = number(3)}), HasSubstr("'w' claims elements"));
  EXPECT_THAT(read(PickledVector{.extent = number(-1)}), HasSubstr("'w' claims elements"));
  EXPECT_THAT(read(PickledVector{.stride = number(2)}), HasSubstr("'w' claims elements"));
  EXPECT_THAT(read(PickledVector{.stride = number(-1)}), HasSubstr("'w' claims elements"));
  const std::string huge = "\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f"s;
  EXPECT_THAT(read(PickledVector{.extent = huge}), HasSubstr("'w' claims elements"));
  EXPECT_THAT(read(PickledVector{.stride = huge}), HasSubstr("'w' claims elements"));
  EXPECT_THAT(read(PickledVector{.offset = huge}), HasSubstr("'w' claims elements"));
  EXPECT_THAT(read(PickledVector{.extent = number(2'000'000), .stride = number(0)}),
              HasSubstr("'w' claims elements"));
  EXPECT_THAT(read(PickledVector{.stored = 1'000'000'000}),
              HasSubstr("'w' claims 1000000000 elements in a storage of 8 bytes"));
  EXPECT_THAT(read(PickledVector{.type = "torch\nLongStorage"}),
              HasSubstr("in a storage of 8 bytes"));
  EXPECT_THAT(read(PickledVector{.stored = -1}), HasSubstr("a negative size"));
}

TEST_F(HostileTorchFile, ShapesWhoseProductsOverflowAreRefused) {
  constexpr int64_t kHuge = int64_t{1} << 62;
  PickledTensor tensor;
  tensor.storage.elements = 2;
  tensor.shape = {3, 0};
  tensor.strides = {1, 1};
  EXPECT_EQ(elements_of(tensor), 0);
  for (const std::vector<int64_t>& shape :
       {std::vector{kHuge, kHuge, int64_t{0}}, {0, kHuge, kHuge}, {-1, 0, 1}}) {
    tensor.shape = shape;
    tensor.strides = {1, 1, 1};
    EXPECT_FALSE(elements_of(tensor));
  }
}

TEST_F(HostileTorchFile, ManyTensorsOfOneStorageAreRefused) {
  std::string items;
  for (int i = 0; i < 2000; ++i) items += text("w" + std::to_string(i)) + PickledVector{}.pickled();
  const std::string pickle = dict_of(items);
  EXPECT_EQ(read(pickle), "read");  // the tensors are small compared to their names
  std::string long_storage(4'000'000, '\0');
  PickledVector vector{.stored = 1'000'000, .extent = number(1'000'000)};
  items.clear();
  for (int i = 0; i < 6; ++i) items += text("w" + std::to_string(i)) + vector.pickled();
  EXPECT_THAT(read(dict_of(items), long_storage), HasSubstr("the same bytes over and over"));
}

TEST_F(HostileTorchFile, PathsAreNamesAndNothingElse) {
  EXPECT_THAT(read(PickledVector{.key = "../../../etc/passwd"}), HasSubstr("are missing"));
  EXPECT_THAT(read(dict_of(text("../w") + PickledVector{}.pickled())),
              HasSubstr("a tensor has the name '../w'"));
  EXPECT_THAT(read(dict_of(text("w\x1b[2J") + PickledVector{}.pickled())),
              HasSubstr("a tensor has the name 'w\\x1b[2J'"));
  const std::string pickle = dict_of(text("w") + PickledVector{}.pickled());
  write_zip(file_, {{"../../a/data.pkl", bytes(pickle)}, {"../../a/data/0", bytes(kTwo)}});
  EXPECT_EQ(read(), "read");  // no file is unpacked
  EXPECT_EQ(std::distance(fs::directory_iterator(dir_.path()), {}), 1);
}

}  // namespace
}  // namespace lockstep::data::hostile_torch_file_test
