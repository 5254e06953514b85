// Numbers of the zip format that its reader and its writer share.
// Source: PKWARE, APPNOTE.TXT, https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace lockstep::data::zip {

constexpr uint32_t kLocalHeader = 0x04034b50;
constexpr uint32_t kDirectoryEntry = 0x02014b50;
constexpr uint32_t kEnd = 0x06054b50;
constexpr uint32_t kEnd64 = 0x06064b50;
constexpr uint32_t kEnd64Locator = 0x07064b50;

// The sizes of the fixed parts, in bytes.
constexpr size_t kLocalHeaderBytes = 30;
constexpr size_t kDirectoryEntryBytes = 46;
constexpr size_t kEndBytes = 22;
constexpr size_t kEnd64Bytes = 56;
constexpr size_t kEnd64LocatorBytes = 20;

constexpr uint16_t kExtra64 = 1;           // extra field with sizes of 64 bits
constexpr uint32_t kIn64 = 0xffffffff;     // "see the extra field"
constexpr uint16_t kMembersIn64 = 0xffff;  // "see the 64-bit end"
constexpr uint16_t kPlain = 0;             // compression methods
constexpr uint16_t kDeflated = 8;

// CRC-32.
uint32_t crc_of(std::span<const std::byte> bytes);

}  // namespace lockstep::data::zip
