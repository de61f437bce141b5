using System;
using System.Text;

namespace ScaleTrain {

/// <summary>A program's own transport between ranks (<see cref="Communicator.Callbacks"/>).</summary>
/// <remarks>Both methods must return without waiting. They are called one at a time but from several threads, one of which monitors the group. An
/// exception means that the other rank can no longer be reached; it ends the group and becomes the reason of the
/// <see cref="RankFailedException"/>.</remarks>
public interface ITransport {
  /// <summary>Sends as many of the first count bytes to rank <paramref name="to"/> as fit, after those sent before. Returns how many.</summary>
  int Write(int to, byte[] bytes, int count);
  /// <summary>Reads up to most bytes that have arrived from rank <paramref name="from"/>. Returns how many; 0 if there are none.</summary>
  int Read(int from, byte[] bytes, int most);
}

/// <summary>Calls of a transport by native code, one at a time.</summary>
internal sealed unsafe class TransportEnd {
  private readonly ITransport transport;
  private readonly byte[] chunk = new byte[64 * 1024];

  internal TransportEnd(ITransport transport) { this.transport = transport; }

  internal long Write(int to, byte* bytes, long count) {
    int now = (int)Math.Min(count, chunk.Length);
    new ReadOnlySpan<byte>(bytes, now).CopyTo(chunk);
    return transport.Write(to, chunk, now);
  }

  internal long Read(int from, byte* bytes, long count) {
    int most = (int)Math.Min(count, chunk.Length), given = transport.Read(from, chunk, most);
    if (given > 0 && given <= most) new ReadOnlySpan<byte>(chunk, 0, given).CopyTo(new Span<byte>(bytes, most));
    return given;  // the library checks its bounds
  }

  /// <summary>Writes the text of an exception to reason, with a terminating zero.</summary>
  internal static IntPtr Say(Exception exception, byte* reason, int room) {
    byte[] text = Encoding.UTF8.GetBytes(exception.GetType().Name + ": " + exception.Message);
    int count = Math.Min(text.Length, room - 1);
    for (int i = 0; i < count; ++i) reason[i] = text[i];
    reason[count] = 0;
    return IntPtr.Zero;
  }
}

}
