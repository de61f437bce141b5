#include "gemm_peer.h"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "cblas_gemm.h"
#include "failure.h"
#include "onednn_gemm.h"
#include "source_tree.h"

namespace cli {

// Exchanged between a process and its fork, so raw structs suffice.
struct GemmPeer::Request {
  enum What { to_open, to_sample, to_check } what;
  bool packed;
  uint64_t seed;
  GemmShape shape;
};

struct GemmPeer::Answer {
  enum Kind { done, failed, wrong } kind;
  Can can;
  double seconds;
  char text[512];
};

namespace {

template <class Message>
bool send_all(int channel, const Message& message) {
  return send(channel, &message, sizeof message, MSG_NOSIGNAL) == ssize_t{sizeof message};
}

template <class Message>
bool receive_all(int channel, Message& message) {
  return recv(channel, &message, sizeof message, MSG_WAITALL) == ssize_t{sizeof message};
}

/// For libraries that start one thread per core: limits the cores to the number of threads.
void limit_cores(int64_t threads) {
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof cores, &cores) != 0) return;
  int64_t kept = 0;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &cores) && ++kept > threads) CPU_CLR(core, &cores);
  sched_setaffinity(0, sizeof cores, &cores);
}

std::unique_ptr<GemmEngine> load(const std::string& name, int64_t threads) {
  setenv("OMP_NUM_THREADS", std::to_string(threads).c_str(), 1);
  if (name == "openblas-haswell") setenv("OPENBLAS_CORETYPE", "Haswell", 1);
  if (name.starts_with("openblas")) return std::make_unique<CblasGemm>("openblas", threads);
  if (!name.starts_with("onednn")) return std::make_unique<CblasGemm>(name, threads);
  limit_cores(threads);
  // The wheel's engine is SYCL's; its CPU device is another library of the wheel.
  if (const auto tree = source_tree()) setenv("OCL_ICD_FILENAMES", (*tree / ".venv/lib/libintelocl.so").c_str(), 0);
  return std::make_unique<OnednnGemm>(name == "onednn-openmp");
}

}  // namespace

GemmPeer::GemmPeer(std::string name, int64_t threads) : name_(std::move(name)) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) throw Gone("cannot make a socket pair");
  const pid_t parent = getpid();
  child_ = fork();
  if (child_ < 0) throw Gone("cannot fork");
  if (child_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // a stopped process would outlive us
    if (getppid() != parent) _exit(0);
    setpgid(0, 0);  // else the system ends a group with stopped members when the parent of our process goes
    close(ends[0]);
    serve(name_, threads, ends[1]);
  }
  close(ends[1]);
  channel_ = ends[0];
  try {
    answer();
  } catch (...) {
    end_child();
    throw;
  }
}

GemmPeer::~GemmPeer() { end_child(); }

void GemmPeer::end_child() {
  if (child_ < 0) return;
  kill(child_, SIGKILL);
  waitpid(child_, nullptr, 0);
  close(channel_);
  child_ = -1;
}

GemmPeer::Can GemmPeer::open(const GemmShape& shape) { return ask_child({Request::to_open, false, 0, shape}).can; }

double GemmPeer::seconds(uint64_t seed, bool packed) { return ask_child({Request::to_sample, packed, seed, {}}).seconds; }

void GemmPeer::check(uint64_t seed, bool packed) { ask_child({Request::to_check, packed, seed, {}}); }

GemmPeer::Answer GemmPeer::ask_child(const Request& request) {
  kill(child_, SIGCONT);
  if (!send_all(channel_, request)) throw Gone("the process of " + name_ + " has ended");
  return answer();
}

GemmPeer::Answer GemmPeer::answer() {
  Answer answer;
  if (!receive_all(channel_, answer)) {
    int status = 0;
    waitpid(child_, &status, 0);
    child_ = -1;
    close(channel_);
    throw Gone("its process ended without an answer" + (WIFSIGNALED(status) ? ", by signal " + std::to_string(WTERMSIG(status)) : ""));
  }
  kill(child_, SIGSTOP);
  if (answer.kind == Answer::failed) throw Gone(answer.text);
  if (answer.kind == Answer::wrong) throw Failure(kFailed, "bench: " + name_ + " " + answer.text);
  return answer;
}

void GemmPeer::serve(const std::string& name, int64_t threads, int channel) {
  const auto reply = [channel](Answer::Kind kind, Can can, double seconds, const char* text) {
    Answer answer = {kind, can, seconds, {}};
    std::strncpy(answer.text, text, sizeof answer.text - 1);
    if (!send_all(channel, answer)) _exit(1);
  };
  try {
    const std::unique_ptr<GemmEngine> engine = load(name, threads);
    reply(Answer::done, {}, 0, "");
    std::unique_ptr<GemmOperands> operands;
    std::unique_ptr<GemmSampler> sampler;
    for (Request request; receive_all(channel, request);) {
      if (request.what == Request::to_open) {
        operands.reset();  // free them before the next allocation
        operands = std::make_unique<GemmOperands>(request.shape);
        sampler = std::make_unique<GemmSampler>(*engine, *operands);
        reply(Answer::done, {sampler->multiplies(), sampler->packs()}, 0, "");
      } else if (request.what == Request::to_sample) {
        reply(Answer::done, {}, sampler->seconds(request.seed, request.packed), "");
      } else {
        sampler->check(request.seed, request.packed);
        reply(Answer::done, {}, 0, "");
      }
    }
  } catch (const WrongProduct& error) {
    reply(Answer::wrong, {}, 0, error.what());
  } catch (const std::exception& error) {
    reply(Answer::failed, {}, 0, error.what());
  }
  _exit(0);  // skip the parent's destructors and buffers
}

}  // namespace cli
