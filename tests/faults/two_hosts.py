"""Two hosts on this machine: network namespaces with their own host names and a virtual cable, made without root if that is allowed."""

import os
import shutil
import socket
import subprocess
import sys
import time


class NotPermitted(Exception):
    """Why this machine does not permit them."""


# The system's errors where namespaces or virtual cables are not available. Any other error is a failure.
_REFUSALS = ("Operation not permitted", "Permission denied", "Operation not supported", "No space left on device")  # last: the limit is 0
_TOOLS = ("unshare", "nsenter", "ip")


def _refuse(words, said):
    raise (NotPermitted if any(refusal in said for refusal in _REFUSALS) else RuntimeError)(f"{' '.join(words)}: {said}")


def _run(words):
    done = subprocess.run(words, capture_output=True, text=True, timeout=20)
    if done.returncode != 0:
        _refuse(words, done.stderr.strip() or f"status {done.returncode}")


class TwoHosts:
    """"near" is 10.77.0.1 and fd77::1, "far" is 10.77.0.2 and fd77::2. end() removes everything."""

    ADDRESSES = {"near": ("10.77.0.1", "fd77::1"), "far": ("10.77.0.2", "fd77::2")}
    _CABLES = {"near": "st-near", "far": "st-far"}

    def __init__(self):
        self._holders = {}
        if missing := [tool for tool in _TOOLS if shutil.which(tool) is None]:
            raise NotPermitted(f"no {' and no '.join(missing)}")
        try:
            self._make()
        except BaseException:
            self.end()
            raise

    def _make(self):
        try:
            self._hold("near", ["unshare", "--user", "--map-root-user", "--net", "--uts"])
            self._is_user = True
        except NotPermitted:  # root needs no user namespace
            self._is_user = False
            self._hold("near", ["unshare", "--net", "--uts"])
        self._hold("far", [*self.inside("near"), "unshare", "--net", "--uts"])
        near = self.inside("near")
        _run([*near, "ip", "link", "add", self._CABLES["near"], "type", "veth", "peer", "name", self._CABLES["far"]])
        _run([*near, "ip", "link", "set", self._CABLES["far"], "netns", str(self._holders["far"].pid)])
        for name, (four, six) in self.ADDRESSES.items():
            inside = self.inside(name)
            _run([*inside, sys.executable, "-c", f"import socket; socket.sethostname({name!r})"])
            _run([*inside, "ip", "addr", "add", f"{four}/24", "dev", self._CABLES[name]])
            for device in ("lo", self._CABLES[name]):
                _run([*inside, "ip", "link", "set", device, "up"])
            if socket.has_ipv6 and os.path.exists("/proc/net/if_inet6"):
                _run([*inside, "ip", "addr", "add", f"{six}/64", "dev", self._CABLES[name], "nodad"])

    def _hold(self, name, words):
        holder = subprocess.Popen([*words, "sleep", "600"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self._holders[name] = holder
        own = os.readlink("/proc/self/ns/uts") if name == "near" else os.readlink(f"/proc/{self._holders['near'].pid}/ns/uts")
        for _ in range(500):  # until it is in its namespace
            time.sleep(0.01)
            if holder.poll() is not None:
                _refuse(words, holder.stderr.read().strip())
            try:
                with open(f"/proc/{holder.pid}/comm", encoding="ascii") as command:
                    if command.read().strip() == "sleep" and os.readlink(f"/proc/{holder.pid}/ns/uts") != own:
                        return
            except (FileNotFoundError, ProcessLookupError):  # it has just ended
                pass
        raise RuntimeError(f"{' '.join(words)} did not start within 5 s")

    def inside(self, name, is_outside=True):
        """The words that make a command run there. is_outside: the caller is not already inside one of the hosts."""
        user = ["--user", "--preserve-credentials"] if self._is_user and is_outside else []
        return ["nsenter", "--target", str(self._holders[name].pid), *user, "--net", "--uts"]

    def cut(self):
        """Pulls the cable."""
        _run([*self.inside("near"), "ip", "link", "set", self._CABLES["near"], "down"])

    def end(self):
        for holder in self._holders.values():
            holder.kill()
            holder.communicate()
        self._holders.clear()
