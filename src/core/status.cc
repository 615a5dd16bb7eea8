// src/core/status.cc: the last failure of each thread.
//
// Idea: one pointer of initial-exec TLS; the text is allocated at a thread's first failure, so success costs nothing and a
// dlopened libflhal asks for eight bytes of static TLS. A pthread key frees it when the thread ends; a failure after that
// (a deleter in a static destructor) simply allocates again. No C++ thread_local object with a destructor: its order
// against other libraries' destructors at exit is unknown.
#include "core/status.h"

#include <pthread.h>

namespace flhal {
namespace {

struct LastError {
  flhal_status code = FLHAL_OK;
  int64_t vendor_code = 0;
  std::string text;
};

thread_local LastError* t_last __attribute__((tls_model("initial-exec"))) = nullptr;
pthread_key_t g_key;
pthread_once_t g_key_once = PTHREAD_ONCE_INIT;

void make_key() {
  pthread_key_create(&g_key, [](void* p) {
    t_last = nullptr;
    delete static_cast<LastError*>(p);
  });
}

LastError& last() {
  if (t_last == nullptr) {
    pthread_once(&g_key_once, make_key);
    t_last = new LastError;
    pthread_setspecific(g_key, t_last);
  }
  return *t_last;
}

}  // namespace

Status fail_text(flhal_status code, std::string text, int64_t vendor_code) {
  LastError& error = last();
  error.code = code;
  error.vendor_code = vendor_code;
  error.text = std::move(text);
  return code;
}

flhal_status last_error_code() { return t_last ? t_last->code : FLHAL_OK; }

const std::string& last_error_text() {
  static const std::string& none = *new std::string;  // never destroyed: may be read at exit
  return t_last ? t_last->text : none;
}

int64_t last_error_vendor_code() { return t_last ? t_last->vendor_code : 0; }

void prefix_last_error(std::string_view prefix) {
  if (t_last != nullptr) t_last->text.insert(0, prefix);
}

}  // namespace flhal
