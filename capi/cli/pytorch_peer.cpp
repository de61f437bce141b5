#include "pytorch_peer.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>

namespace cli {
namespace {

std::string interpreter(const std::filesystem::path& tree) {
  const char* named = std::getenv("SCALETRAIN_PYTHON");
  std::string python = named != nullptr ? named : (tree / ".venv/bin/python").string();
  if (access(python.c_str(), X_OK) != 0) throw std::runtime_error("no " + python + "; name a python with torch in SCALETRAIN_PYTHON");
  return python;
}

}  // namespace

PytorchPeer::PytorchPeer(const std::string& script) {
  const auto tree = source_tree();
  if (!tree) throw std::runtime_error("no " + script + " above this program; use the one that the source tree's presets build");
  const std::string python = interpreter(*tree), program = (*tree / script).string();
  int down[2], up[2];
  if (pipe(down) != 0 || pipe(up) != 0) throw std::runtime_error("cannot make a pipe");
  std::signal(SIGPIPE, SIG_IGN);  // if the child dies, its answer is missing
  child_ = fork();
  if (child_ < 0) throw std::runtime_error("cannot fork");
  if (child_ == 0) {
    dup2(down[0], STDIN_FILENO);
    dup2(up[1], STDOUT_FILENO);
    for (const int fd : {down[0], down[1], up[0], up[1]}) close(fd);
    execl(python.c_str(), python.c_str(), program.c_str(), nullptr);
    _exit(127);
  }
  close(down[0]);
  close(up[1]);
  to_ = fdopen(down[1], "w");
  from_ = fdopen(up[0], "r");
  try {
    version_ = ask_child({{"do", "hello"}})["torch"].get<std::string>();
  } catch (...) {
    end_child();
    throw;
  }
}

PytorchPeer::~PytorchPeer() { end_child(); }

void PytorchPeer::end_child() {
  if (to_ != nullptr) std::fclose(to_);  // the child ends at its end of input
  if (from_ != nullptr) std::fclose(from_);
  if (child_ > 0) waitpid(child_, nullptr, 0);
}

std::vector<std::string> PytorchPeer::open(const Json& request, std::map<std::string, std::string>& absent) {
  Json message = request;
  message["do"] = "open";
  const Json answer = ask_child(message);
  for (const auto& [mode, reason] : answer["absent"].items()) absent["pytorch-" + mode] = reason.get<std::string>();
  return answer["modes"].get<std::vector<std::string>>();
}

PytorchPeer::Step PytorchPeer::step(const std::string& mode) {
  const Json answer = ask_child({{"do", "step"}, {"mode", mode}});
  return {answer["check"].get<double>(), answer["seconds"].get<double>()};
}

Json PytorchPeer::ask_child(const Json& request) {
  const std::string line = request.dump() + "\n";
  std::fwrite(line.data(), 1, line.size(), to_);
  std::fflush(to_);
  char* text = nullptr;
  size_t room = 0;
  const ssize_t length = getline(&text, &room, from_);
  const std::string answer = length > 0 ? std::string(text, static_cast<size_t>(length)) : "";
  std::free(text);
  if (answer.empty()) throw std::runtime_error("the PyTorch process ended without an answer");
  Json json = Json::parse(answer);
  if (json.contains("error")) throw std::runtime_error(json["error"].get<std::string>());
  return json;
}

}  // namespace cli
