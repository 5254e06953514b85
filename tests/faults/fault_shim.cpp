// An LD_PRELOAD library: one call of some type fails, is cut short, is delayed or ends the process.
//
//   FAULT_CALL    the type of call, a name in kNames
//   FAULT_AT      which call of this type, counted from 1 over all threads
//   FAULT_DO      error:ERRNO, errors:ERRNO (this call and all later ones), short, late:MS or kill
//   FAULT_FROM    optional: calls count once a file is opened whose path contains this text
//   FAULT_COUNTS  optional: a file for the number of calls, one uint64_t per type; it is correct
//                 however the process ends
//
// Calls count from main() on. oneDNN's own mmap calls do not count: version 2.6.3 crashes if it
// gets no memory for its code. Only calls between libraries are seen, not those that libc makes
// internally: stdio files (fopen, printf), opendir, the memory behind malloc and thread stacks, and
// the futexes of mutexes, condition variables and joins. Calls of std::fstream are seen, except its
// open.
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string_view>
#include <type_traits>

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

extern "C" {
void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* memory, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);
}

namespace {

enum Kind : uint8_t {
  kOpen,
  kRead,
  kWrite,
  kFsync,
  kRename,
  kUnlink,
  kSymlink,
  kMkdir,
  kMmap,
  kMemfd,
  kSocket,
  kSend,
  kRecv,
  kFutex,
  kMalloc,
  kKinds
};
// clang-format off
constexpr std::array<std::string_view, kKinds> kNames = {
    "open", "read", "write", "fsync", "rename", "unlink", "symlink", "mkdir", "mmap",
    "memfd_create", "socket", "send", "recv", "futex", "malloc"};
// clang-format on

enum class Action : uint8_t { kNothing, kError, kShort, kLate, kKill };

struct Plan {
  Kind kind = kKinds;
  uint64_t at = 0;
  bool stays = false;  // for later calls of this type, too
  Action action = Action::kNothing;
  int value = 0;               // errno or milliseconds
  const char* from = nullptr;  // FAULT_FROM
};

using Counts = std::array<std::atomic<uint64_t>, kKinds>;

Plan plan;
Counts own_counts;
Counts* counts = &own_counts;
std::atomic<bool> counting = false;

int number_of(const char* text) {
  int number = 0;
  std::from_chars(text, text + std::strlen(text), number);
  return number;
}

// The function that would be called without this library.
#define NEXT(name) \
  static const auto next = reinterpret_cast<decltype(&::name)>(dlsym(RTLD_NEXT, #name))

Action action_of(const char* text) {
  if (std::strncmp(text, "error", 5) == 0) return Action::kError;
  if (std::strcmp(text, "short") == 0) return Action::kShort;
  if (std::strncmp(text, "late", 4) == 0) return Action::kLate;
  return std::strcmp(text, "kill") == 0 ? Action::kKill : Action::kNothing;
}

void share_counts(const char* path) {
  NEXT(mmap);
  const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0 || ftruncate(fd, sizeof(Counts)) != 0) std::abort();
  void* memory = next(nullptr, sizeof(Counts), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) std::abort();
  close(fd);
  counts = static_cast<Counts*>(memory);
}

__attribute__((constructor)) void read_plan() {
  if (const char* path = std::getenv("FAULT_COUNTS")) share_counts(path);
  const char* call = std::getenv("FAULT_CALL");
  const char* at = std::getenv("FAULT_AT");
  const char* action = std::getenv("FAULT_DO");
  if (call != nullptr && at != nullptr && action != nullptr) {
    for (uint8_t kind = 0; kind < kKinds; ++kind) {
      if (kNames[kind] == call) plan.kind = static_cast<Kind>(kind);
    }
    const char* value = std::strchr(action, ':');
    plan.at = static_cast<uint64_t>(number_of(at));
    plan.action = action_of(action);
    plan.stays = std::strncmp(action, "errors", 6) == 0;
    plan.value = value == nullptr ? 0 : number_of(value + 1);
    if (plan.kind == kKinds || plan.at == 0 || plan.action == Action::kNothing) std::abort();
  }
  plan.from = std::getenv("FAULT_FROM");
}

using Main = int (*)(int, char**, char**);

Main program_main = nullptr;

// Starts counting here, so calls that libraries make before main() do not count.
int counted_main(int argc, char** argv, char** environment) {
  counting = plan.from == nullptr;
  return program_main(argc, argv, environment);
}

// Returns what happens to this call. It may not return at all.
Action act(Kind kind) {
  if (!counting.load(std::memory_order_relaxed)) return Action::kNothing;
  const uint64_t number = (*counts)[kind].fetch_add(1, std::memory_order_relaxed) + 1;
  const bool hit = number == plan.at || (plan.stays && number > plan.at);
  if (kind != plan.kind || !hit) return Action::kNothing;
  if (plan.action == Action::kKill) kill(getpid(), SIGKILL);
  if (plan.action == Action::kLate) {
    const timespec pause{.tv_sec = plan.value / 1000, .tv_nsec = plan.value % 1000 * 1'000'000L};
    nanosleep(&pause, nullptr);
    return Action::kNothing;
  }
  if (plan.action == Action::kError) errno = plan.value;
  return plan.action;
}

bool fails(Kind kind) {
  return act(kind) == Action::kError;
}

// The number of bytes that the call may transfer, or -1 if it fails.
ssize_t bytes_left(Kind kind, size_t bytes) {
  switch (act(kind)) {
    case Action::kError:
      return -1;
    case Action::kShort:
      return static_cast<ssize_t>((bytes + 1) / 2);
    default:
      return static_cast<ssize_t>(bytes);
  }
}

// Calls next(arguments before the count..., count, arguments after it...) unless the call is to
// fail.
template <class Next>
ssize_t transfer(Kind kind, size_t bytes, Next&& next) {
  const ssize_t left = bytes_left(kind, bytes);
  return left < 0 ? -1 : next(static_cast<size_t>(left));
}

bool is_of_onednn(const void* caller) {
  Dl_info found{};
  return dladdr(caller, &found) != 0 && std::strstr(found.dli_fname, "libdnnl") != nullptr;
}

void look_for_start(const char* path) {
  if (plan.from != nullptr && std::strstr(path, plan.from) != nullptr) counting = true;
}

mode_t mode_of(int flags, va_list list) {
  const bool creates = (flags & (O_CREAT | O_TMPFILE)) != 0;
  return creates ? static_cast<mode_t>(va_arg(list, int)) : 0;
}

}  // namespace

#define OPEN(name)                                      \
  int name(const char* path, int flags, ...) {          \
    NEXT(name);                                         \
    va_list list;                                       \
    va_start(list, flags);                              \
    const mode_t mode = mode_of(flags, list);           \
    va_end(list);                                       \
    look_for_start(path);                               \
    return fails(kOpen) ? -1 : next(path, flags, mode); \
  }
#define OPEN_AT(name)                                           \
  int name(int folder, const char* path, int flags, ...) {      \
    NEXT(name);                                                 \
    va_list list;                                               \
    va_start(list, flags);                                      \
    const mode_t mode = mode_of(flags, list);                   \
    va_end(list);                                               \
    look_for_start(path);                                       \
    return fails(kOpen) ? -1 : next(folder, path, flags, mode); \
  }
#define READ_OR_WRITE_AT(kind, name, memory)                                        \
  ssize_t name(int fd, memory* bytes, size_t count, off_t at) {                     \
    NEXT(name);                                                                     \
    return transfer(kind, count, [&](size_t n) { return next(fd, bytes, n, at); }); \
  }

extern "C" {

int __libc_start_main(Main main_function,
                      int argc,
                      char** argv,
                      void (*init)(),
                      void (*fini)(),
                      void (*at_end)(),
                      void* stack_end) {
  NEXT(__libc_start_main);
  program_main = main_function;
  return next(counted_main, argc, argv, init, fini, at_end, stack_end);
}

OPEN(open)
OPEN(open64)
OPEN_AT(openat)
OPEN_AT(openat64)

ssize_t read(int fd, void* bytes, size_t count) {
  NEXT(read);
  return transfer(kRead, count, [&](size_t n) { return next(fd, bytes, n); });
}
ssize_t write(int fd, const void* bytes, size_t count) {
  NEXT(write);
  return transfer(kWrite, count, [&](size_t n) { return next(fd, bytes, n); });
}
READ_OR_WRITE_AT(kRead, pread, void)
READ_OR_WRITE_AT(kRead, pread64, void)
READ_OR_WRITE_AT(kWrite, pwrite, const void)
READ_OR_WRITE_AT(kWrite, pwrite64, const void)
ssize_t writev(int fd, const iovec* parts, int count) {  // used by std::fstream
  NEXT(writev);
  return fails(kWrite) ? -1 : next(fd, parts, count);
}

int fsync(int fd) {
  NEXT(fsync);
  return fails(kFsync) ? -1 : next(fd);
}
int fdatasync(int fd) {
  NEXT(fdatasync);
  return fails(kFsync) ? -1 : next(fd);
}

int rename(const char* from, const char* to) noexcept {
  NEXT(rename);
  return fails(kRename) ? -1 : next(from, to);
}
int renameat(int from_folder, const char* from, int to_folder, const char* to) noexcept {
  NEXT(renameat);
  return fails(kRename) ? -1 : next(from_folder, from, to_folder, to);
}

int unlink(const char* path) noexcept {
  NEXT(unlink);
  return fails(kUnlink) ? -1 : next(path);
}
int unlinkat(int folder, const char* path, int flags) noexcept {
  NEXT(unlinkat);
  return fails(kUnlink) ? -1 : next(folder, path, flags);
}
int remove(const char* path) noexcept {  // used by std::filesystem::remove
  NEXT(remove);
  return fails(kUnlink) ? -1 : next(path);
}

int symlinkat(const char* target, int folder, const char* path) noexcept {
  NEXT(symlinkat);
  return fails(kSymlink) ? -1 : next(target, folder, path);
}

int mkdir(const char* path, mode_t mode) noexcept {
  NEXT(mkdir);
  return fails(kMkdir) ? -1 : next(path, mode);
}
int mkdirat(int folder, const char* path, mode_t mode) noexcept {
  NEXT(mkdirat);
  return fails(kMkdir) ? -1 : next(folder, path, mode);
}

void* mmap(void* place, size_t bytes, int rights, int flags, int fd, off_t at) noexcept {
  NEXT(mmap);
  const bool counts_here = !is_of_onednn(__builtin_return_address(0));
  return counts_here && fails(kMmap) ? MAP_FAILED : next(place, bytes, rights, flags, fd, at);
}
int memfd_create(const char* name, unsigned flags) noexcept {
  NEXT(memfd_create);
  return fails(kMemfd) ? -1 : next(name, flags);
}

int socket(int domain, int type, int protocol) noexcept {
  NEXT(socket);
  return fails(kSocket) ? -1 : next(domain, type, protocol);
}
ssize_t send(int fd, const void* bytes, size_t count, int flags) {
  NEXT(send);
  return transfer(kSend, count, [&](size_t n) { return next(fd, bytes, n, flags); });
}
ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  NEXT(sendmsg);
  return fails(kSend) ? -1 : next(fd, message, flags);
}
ssize_t recv(int fd, void* bytes, size_t count, int flags) {
  NEXT(recv);
  return transfer(kRecv, count, [&](size_t n) { return next(fd, bytes, n, flags); });
}
ssize_t recvmsg(int fd, msghdr* message, int flags) {
  NEXT(recvmsg);
  return fails(kRecv) ? -1 : next(fd, message, flags);
}

// The futex waits and wakes of comm/shared.
long syscall(long number, ...) noexcept {
  NEXT(syscall);
  std::array<long, 6> a{};
  va_list list;
  va_start(list, number);
  for (long& each : a) each = va_arg(list, long);
  va_end(list);
  if (number == SYS_futex && fails(kFutex)) return -1;
  return next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

void* malloc(size_t bytes) noexcept {
  return fails(kMalloc) ? nullptr : __libc_malloc(bytes);
}
void* calloc(size_t count, size_t bytes) noexcept {
  return fails(kMalloc) ? nullptr : __libc_calloc(count, bytes);
}
void* realloc(void* memory, size_t bytes) noexcept {
  return fails(kMalloc) ? nullptr : __libc_realloc(memory, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) noexcept {
  return fails(kMalloc) ? nullptr : __libc_memalign(alignment, bytes);
}
int posix_memalign(void** memory, size_t alignment, size_t bytes) noexcept {
  void* const block = fails(kMalloc) ? nullptr : __libc_memalign(alignment, bytes);
  if (block == nullptr) return ENOMEM;
  *memory = block;
  return 0;
}

}  // extern "C"
