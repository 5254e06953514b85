// The functions that g++ -fsanitize=thread calls at each memory access, in place of
// ThreadSanitizer's library.
#include "tests/emulation/access_check.h"

using lockstep::emulation::note_access;

#define INSTRUMENTED(bytes)                                     \
  void __tsan_read##bytes(void* at) {                           \
    note_access(at, bytes, false, __builtin_return_address(0)); \
  }                                                             \
  void __tsan_write##bytes(void* at) {                          \
    note_access(at, bytes, true, __builtin_return_address(0));  \
  }                                                             \
  void __tsan_unaligned_read##bytes(void* at) {                 \
    note_access(at, bytes, false, __builtin_return_address(0)); \
  }                                                             \
  void __tsan_unaligned_write##bytes(void* at) {                \
    note_access(at, bytes, true, __builtin_return_address(0));  \
  }

extern "C" {

INSTRUMENTED(1)
INSTRUMENTED(2)
INSTRUMENTED(4)
INSTRUMENTED(8)
INSTRUMENTED(16)

void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}

void __tsan_read_range(void* at, unsigned long bytes) {
  for (unsigned long i = 0; i < bytes; ++i)
    note_access(static_cast<char*>(at) + i, 1, false, __builtin_return_address(0));
}
void __tsan_write_range(void* at, unsigned long bytes) {
  for (unsigned long i = 0; i < bytes; ++i)
    note_access(static_cast<char*>(at) + i, 1, true, __builtin_return_address(0));
}

// For host code in the same files as kernels: reference counts and guards of statics.
#define INSTRUMENTED_ATOMIC(bits, T)                                \
  T __tsan_atomic##bits##_load(const volatile T* at, int) {         \
    return __atomic_load_n(at, __ATOMIC_SEQ_CST);                   \
  }                                                                 \
  void __tsan_atomic##bits##_store(volatile T* at, T value, int) {  \
    __atomic_store_n(at, value, __ATOMIC_SEQ_CST);                  \
  }                                                                 \
  T __tsan_atomic##bits##_fetch_add(volatile T* at, T value, int) { \
    return __atomic_fetch_add(at, value, __ATOMIC_SEQ_CST);         \
  }                                                                 \
  T __tsan_atomic##bits##_fetch_sub(volatile T* at, T value, int) { \
    return __atomic_fetch_sub(at, value, __ATOMIC_SEQ_CST);         \
  }                                                                 \
  T __tsan_atomic##bits##_exchange(volatile T* at, T value, int) {  \
    return __atomic_exchange_n(at, value, __ATOMIC_SEQ_CST);        \
  }
INSTRUMENTED_ATOMIC(8, char)
INSTRUMENTED_ATOMIC(16, short)
INSTRUMENTED_ATOMIC(32, int)
INSTRUMENTED_ATOMIC(64, long)

}  // extern "C"
