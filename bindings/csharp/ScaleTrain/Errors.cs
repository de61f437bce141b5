using System;

namespace ScaleTrain {

/// <summary>The kinds of error: the statuses of the C header <c>error.h</c>.</summary>
public enum Status {
  /// <summary>No error.</summary>
  Ok = 0,
  /// <summary>An argument has a value that the call does not accept.</summary>
  InvalidArgument = 1,
  /// <summary>The object is disposed.</summary>
  InvalidHandle = 2,
  /// <summary>The call is not allowed in the current state of the object.</summary>
  WrongState = 3,
  /// <summary>A name or a file does not exist.</summary>
  NotFound = 4,
  /// <summary>The call needs more memory than is available or than the limit allows.</summary>
  OutOfMemory = 5,
  /// <summary>A device, plug-in or library is not available.</summary>
  Unavailable = 6,
  /// <summary>The library does not support this.</summary>
  Unsupported = 7,
  /// <summary>The call was cancelled.</summary>
  Cancelled = 8,
  /// <summary>The object is in use by another call.</summary>
  Busy = 9,
  /// <summary>A deadline has passed.</summary>
  Timeout = 10,
  /// <summary>A rank failed.</summary>
  RankFailed = 11,
  /// <summary>The ranks' calls differ.</summary>
  RankMismatch = 12,
  /// <summary>A file is damaged.</summary>
  Corrupt = 13,
  /// <summary>A file cannot be read or written.</summary>
  Io = 14,
  /// <summary>A value that must be finite is infinite or NaN.</summary>
  NotFinite = 15,
  /// <summary>A callback failed.</summary>
  Callback = 16,
  /// <summary>A bug in the library.</summary>
  Internal = 17
}

/// <summary>A failed call. The message names the operation, its values and the way out. An exception of a program's own callback is rethrown as it is
/// and does not become one of these.</summary>
[OfC("st_last_error", "st_last_error_info", "st_callback_error")]
public class ScaleTrainException : Exception {
  internal ScaleTrainException(Status status, string message) : base(message) {
    Status = status;
    Op = Tensor = File = Host = Collective = "";
    Offset = Step = Rank = -1;
  }

  /// <summary>The kind of error.</summary>
  public Status Status { get; }
  /// <summary>The op, or "".</summary>
  public string Op { get; internal set; }
  /// <summary>The tensor, parameter or field, or "".</summary>
  public string Tensor { get; internal set; }
  /// <summary>The file, or "".</summary>
  public string File { get; internal set; }
  /// <summary>The machine, or "".</summary>
  public string Host { get; internal set; }
  /// <summary>The collective, or "".</summary>
  public string Collective { get; internal set; }
  /// <summary>The position in the file, in bytes; -1 if unknown.</summary>
  public long Offset { get; internal set; }
  /// <summary>The training step; -1 if unknown.</summary>
  public long Step { get; internal set; }
  /// <summary>The rank; -1 if unknown.</summary>
  public int Rank { get; internal set; }

  /// <summary>The library's error. The record has message, op, tensor, file, host, collective, offset, step, rank.</summary>
  internal static ScaleTrainException Of(Status status, Record record) {
    ScaleTrainException made = Of(status, MethodNames.In(record.Text()));
    made.Op = record.Text();
    made.Tensor = record.Text();
    made.File = record.Text();
    made.Host = record.Text();
    made.Collective = record.Text();
    made.Offset = record.Integer();
    made.Step = record.Integer();
    made.Rank = (int)record.Integer();
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

/// <summary>An argument has a dtype, size, name or value that the call does not accept.</summary>
public sealed class InvalidArgumentException : ScaleTrainException {
  internal InvalidArgumentException(string message) : base(Status.InvalidArgument, message) {}
}

/// <summary>The object is disposed.</summary>
public sealed class InvalidHandleException : ScaleTrainException {
  internal InvalidHandleException(string message) : base(Status.InvalidHandle, message) {}
}

/// <summary>The call is not allowed in the current state of the object.</summary>
public sealed class WrongStateException : ScaleTrainException {
  internal WrongStateException(string message) : base(Status.WrongState, message) {}
}

/// <summary>A name or a file does not exist.</summary>
public sealed class NotFoundException : ScaleTrainException {
  internal NotFoundException(string message) : base(Status.NotFound, message) {}
}

/// <summary>The call needs more memory than is available or than <see cref="ContextOptions.MemoryLimit"/> allows.</summary>
public sealed class NoMemoryException : ScaleTrainException {
  internal NoMemoryException(string message) : base(Status.OutOfMemory, message) {}
}

/// <summary>A device, a plug-in or the native library itself is not available.</summary>
public sealed class UnavailableException : ScaleTrainException {
  internal UnavailableException(string message) : base(Status.Unavailable, message) {}
}

/// <summary>The library does not support this.</summary>
public sealed class UnsupportedException : ScaleTrainException {
  internal UnsupportedException(string message) : base(Status.Unsupported, message) {}
}

/// <summary>The call was ended by Cancel(). A task with a CancellationToken is cancelled instead.</summary>
public sealed class CancelledException : ScaleTrainException {
  internal CancelledException(string message) : base(Status.Cancelled, message) {}
}

/// <summary>The object is in use: another thread, or the call that invoked this callback, is inside one of its methods.</summary>
public sealed class BusyException : ScaleTrainException {
  internal BusyException(string message) : base(Status.Busy, message) {}
}

/// <summary>A deadline has passed.</summary>
public sealed class TimedOutException : ScaleTrainException {
  internal TimedOutException(string message) : base(Status.Timeout, message) {}
}

/// <summary>A rank failed, or its calls differ from those of the other ranks.</summary>
public sealed class RankFailedException : ScaleTrainException {
  internal RankFailedException(Status status, string message) : base(status, message) {}
}

/// <summary>A file cannot be read or written (<see cref="Status.Io"/>), or is damaged (<see cref="Status.Corrupt"/>).</summary>
public sealed class CheckpointException : ScaleTrainException {
  internal CheckpointException(Status status, string message) : base(status, message) {}
}

/// <summary>A value that must be finite is infinite or NaN.</summary>
public sealed class NotFiniteException : ScaleTrainException {
  internal NotFiniteException(string message) : base(Status.NotFinite, message) {}
}

/// <summary>A callback failed without a C# exception. An exception of a C# callback is rethrown as it is.</summary>
public sealed class CallbackException : ScaleTrainException {
  internal CallbackException(string message) : base(Status.Callback, message) {}
}

/// <summary>A bug in the library.</summary>
public sealed class InternalErrorException : ScaleTrainException {
  internal InternalErrorException(string message) : base(Status.Internal, message) {}
}

}
