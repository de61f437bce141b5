using System;

namespace ScaleTrain {

/// <summary>What kind of error it is: the statuses of the C header <c>error.h</c>.</summary>
public enum Status {
  /// <summary>No error.</summary>
  Ok = 0,
  /// <summary>An argument that cannot be.</summary>
  InvalidArgument = 1,
  /// <summary>An object that is disposed.</summary>
  InvalidHandle = 2,
  /// <summary>A call out of its turn.</summary>
  WrongState = 3,
  /// <summary>A name or file that is not there.</summary>
  NotFound = 4,
  /// <summary>More memory than there is, or than the limit allows.</summary>
  OutOfMemory = 5,
  /// <summary>A device, plug-in or library that is not here.</summary>
  Unavailable = 6,
  /// <summary>Something that the library does not do.</summary>
  Unsupported = 7,
  /// <summary>Ended by a cancel.</summary>
  Cancelled = 8,
  /// <summary>An object that another call is inside of.</summary>
  Busy = 9,
  /// <summary>It took longer than it was given.</summary>
  Timeout = 10,
  /// <summary>A rank failed.</summary>
  RankFailed = 11,
  /// <summary>A rank does something else than the others.</summary>
  RankMismatch = 12,
  /// <summary>A file that is damaged.</summary>
  Corrupt = 13,
  /// <summary>A file that cannot be read or written.</summary>
  Io = 14,
  /// <summary>An infinity or NaN where there may be none.</summary>
  NotFinite = 15,
  /// <summary>A callback failed.</summary>
  Callback = 16,
  /// <summary>A defect of the library.</summary>
  Internal = 17
}

/// <summary>A call that failed. The message says what was asked, with which values, and the way out. What a program's own callback throws
/// is none of these: it arrives as itself.</summary>
[OfC("st_last_error", "st_last_error_info", "st_callback_error")]
public class ScaleTrainException : Exception {
  internal ScaleTrainException(Status status, string message) : base(message) {
    Status = status;
    Op = Tensor = File = Host = Collective = "";
    Offset = Step = Rank = -1;
  }

  /// <summary>What kind of error it is.</summary>
  public Status Status { get; }
  /// <summary>The op, or "".</summary>
  public string Op { get; internal set; }
  /// <summary>The tensor, parameter or field, or "".</summary>
  public string Tensor { get; internal set; }
  /// <summary>The file, or "".</summary>
  public string File { get; internal set; }
  /// <summary>The machine, or "".</summary>
  public string Host { get; internal set; }
  /// <summary>The exchange between ranks, or "".</summary>
  public string Collective { get; internal set; }
  /// <summary>Where in the file; -1: unknown.</summary>
  public long Offset { get; internal set; }
  /// <summary>Of training; -1: unknown.</summary>
  public long Step { get; internal set; }
  /// <summary>Which of the ranks; -1: unknown.</summary>
  public int Rank { get; internal set; }

  /// <summary>Of the library's: message, op, tensor, file, host, collective, offset, step, rank.</summary>
  internal static ScaleTrainException Of(Status status, Record told) {
    ScaleTrainException made = Of(status, told.Text());
    made.Op = told.Text();
    made.Tensor = told.Text();
    made.File = told.Text();
    made.Host = told.Text();
    made.Collective = told.Text();
    made.Offset = told.Integer();
    made.Step = told.Integer();
    made.Rank = (int)told.Integer();
    return made;
  }

  private static ScaleTrainException Of(Status status, string message) {
    switch (status) {
      case Status.InvalidArgument: return new InvalidArgumentException(message);
      case Status.InvalidHandle: return new InvalidHandleException(message);
      case Status.WrongState: return new WrongStateException(message);
      case Status.NotFound: return new NotFoundException(message);
      case Status.OutOfMemory: return new NoMemoryException(message);
      case Status.Unavailable: return new UnavailableException(message);
      case Status.Unsupported: return new UnsupportedException(message);
      case Status.Cancelled: return new CancelledException(message);
      case Status.Busy: return new BusyException(message);
      case Status.Timeout: return new TimedOutException(message);
      case Status.RankFailed:
      case Status.RankMismatch: return new RankFailedException(status, message);
      case Status.Corrupt:
      case Status.Io: return new CheckpointException(status, message);
      case Status.NotFinite: return new NotFiniteException(message);
      case Status.Callback: return new CallbackException(message);
      default: return new InternalErrorException(message);
    }
  }
}

/// <summary>An argument that cannot be: a wrong dtype, size, name or value.</summary>
public sealed class InvalidArgumentException : ScaleTrainException {
  internal InvalidArgumentException(string message) : base(Status.InvalidArgument, message) {}
}

/// <summary>An object that is disposed.</summary>
public sealed class InvalidHandleException : ScaleTrainException {
  internal InvalidHandleException(string message) : base(Status.InvalidHandle, message) {}
}

/// <summary>A call out of its turn.</summary>
public sealed class WrongStateException : ScaleTrainException {
  internal WrongStateException(string message) : base(Status.WrongState, message) {}
}

/// <summary>A name or a file that is not there.</summary>
public sealed class NotFoundException : ScaleTrainException {
  internal NotFoundException(string message) : base(Status.NotFound, message) {}
}

/// <summary>More memory than there is, or than <see cref="ContextOptions.MemoryLimit"/> allows.</summary>
public sealed class NoMemoryException : ScaleTrainException {
  internal NoMemoryException(string message) : base(Status.OutOfMemory, message) {}
}

/// <summary>A device, a plug-in or the native library itself that is not here.</summary>
public sealed class UnavailableException : ScaleTrainException {
  internal UnavailableException(string message) : base(Status.Unavailable, message) {}
}

/// <summary>Something that the library does not do.</summary>
public sealed class UnsupportedException : ScaleTrainException {
  internal UnsupportedException(string message) : base(Status.Unsupported, message) {}
}

/// <summary>A call that Cancel() ended. A task with a CancellationToken is cancelled instead.</summary>
public sealed class CancelledException : ScaleTrainException {
  internal CancelledException(string message) : base(Status.Cancelled, message) {}
}

/// <summary>An object that another thread, or the callback's own caller, is inside of.</summary>
public sealed class BusyException : ScaleTrainException {
  internal BusyException(string message) : base(Status.Busy, message) {}
}

/// <summary>Something that took longer than it was given.</summary>
public sealed class TimedOutException : ScaleTrainException {
  internal TimedOutException(string message) : base(Status.Timeout, message) {}
}

/// <summary>A rank that failed, or that does something else than the others.</summary>
public sealed class RankFailedException : ScaleTrainException {
  internal RankFailedException(Status status, string message) : base(status, message) {}
}

/// <summary>A file that cannot be read or written (<see cref="Status.Io"/>), or is damaged (<see cref="Status.Corrupt"/>).</summary>
public sealed class CheckpointException : ScaleTrainException {
  internal CheckpointException(Status status, string message) : base(status, message) {}
}

/// <summary>An infinity or NaN where there may be none.</summary>
public sealed class NotFiniteException : ScaleTrainException {
  internal NotFiniteException(string message) : base(Status.NotFinite, message) {}
}

/// <summary>A callback that failed in another way than by an exception of C#, which arrives as itself.</summary>
public sealed class CallbackException : ScaleTrainException {
  internal CallbackException(string message) : base(Status.Callback, message) {}
}

/// <summary>A defect of the library.</summary>
public sealed class InternalErrorException : ScaleTrainException {
  internal InternalErrorException(string message) : base(Status.Internal, message) {}
}

}
