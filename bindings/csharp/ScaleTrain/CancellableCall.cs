using System;
using System.Threading;

namespace ScaleTrain {

/// <summary>A call that a token can cancel; the task that made it then counts as cancelled, not as failed.</summary>
internal sealed class CancellableCall {
  private readonly CancellationToken token;
  private readonly Action cancel, forget;
  private bool wasCancelled;

  /// <summary>cancel ends the running call, or the next one. forget withdraws a cancel that no call has consumed.</summary>
  internal CancellableCall(CancellationToken token, Action cancel, Action forget) {
    this.token = token;
    this.cancel = cancel;
    this.forget = forget;
  }

  internal T Do<T>(Func<T> call) {
    token.ThrowIfCancellationRequested();
    bool wasMet = false;
    CancellationTokenRegistration registration = token.Register(Cancel);
    try {
      return call();
    } catch (CancelledException ended) when (token.IsCancellationRequested) {
      wasMet = true;
      throw new OperationCanceledException(ended.Message, ended, token);
    } finally {
      registration.Dispose();  // waits for a Cancel that has begun
      if (wasCancelled && !wasMet) forget();  // the call ended for another reason: the cancel must not hit the next call
    }
  }

  private void Cancel() {
    wasCancelled = true;
    try { cancel(); } catch (InvalidHandleException) {}  // disposed: there is no call to cancel
  }
}

}
