// Opcodes of pickle protocols 2 to 5, without those of out-of-band buffers and of extension codes,
// which a file of torch.save cannot have. Source: Python's Lib/pickletools.py.
#pragma once

#include <cstdint>

namespace lockstep::data::pickle {

constexpr uint8_t kProtocol = 2;  // torch.save's, unless asked for another
constexpr uint8_t kLastProtocol = 5;

enum Op : uint8_t {
  kMark = '(',
  kStop = '.',
  kPop = '0',
  kPopMark = '1',
  kBinBytes = 'B',
  kShortBinBytes = 'C',
  kBinFloat = 'G',
  kBinInt = 'J',
  kBinInt1 = 'K',
  kBinInt2 = 'M',
  kNone = 'N',
  kBinPersId = 'Q',
  kReduce = 'R',
  kBinString = 'T',
  kShortBinString = 'U',
  kBinUnicode = 'X',
  kAppend = 'a',
  kBuild = 'b',
  kGlobal = 'c',
  kAppends = 'e',
  kBinGet = 'h',
  kLongBinGet = 'j',
  kBinPut = 'q',
  kLongBinPut = 'r',
  kSetItem = 's',
  kTuple = 't',
  kSetItems = 'u',
  kEmptyTuple = ')',
  kEmptyList = ']',
  kEmptyDict = '}',
  kProto = 0x80,
  kNewObject = 0x81,
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kNewTrue = 0x88,
  kNewFalse = 0x89,
  kLong1 = 0x8a,
  kLong4 = 0x8b,
  kShortBinUnicode = 0x8c,
  kBinUnicode8 = 0x8d,
  kBinBytes8 = 0x8e,
  kEmptySet = 0x8f,
  kAddItems = 0x90,
  kFrozenSet = 0x91,
  kNewObjectKeywords = 0x92,
  kStackGlobal = 0x93,
  kMemoize = 0x94,
  kFrame = 0x95,
  kByteArray8 = 0x96,
};

constexpr const char* kOrderedDict = "collections.OrderedDict";
constexpr const char* kDefaultDict = "collections.defaultdict";
constexpr const char* kRebuildTensor = "torch._utils._rebuild_tensor_v2";
// It makes tensors of types without a storage class: the type is an argument.
constexpr const char* kRebuildTypedTensor = "torch._utils._rebuild_tensor_v3";
constexpr const char* kRebuildParameter = "torch._utils._rebuild_parameter";
constexpr const char* kRebuildParameterWithState = "torch._utils._rebuild_parameter_with_state";
// It makes tensors that have attributes of their own.
constexpr const char* kRebuildFromType = "torch._tensor._rebuild_from_type_v2";

}  // namespace lockstep::data::pickle
