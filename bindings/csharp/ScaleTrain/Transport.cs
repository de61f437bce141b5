using System;
using System.Text;

namespace ScaleTrain {

/// <summary>How a rank reaches the others by a program's own means (<see cref="Communicator.Callbacks"/>).</summary>
/// <remarks>Both return at once; they are called one at a time, but from several threads: one of the library's looks after the group. What they throw says
/// that the other rank can be reached no more, and becomes the reason of the <see cref="RankFailedException"/> that ends the group.</remarks>
public interface ITransport {
  /// <summary>Takes what it can of the first count bytes for rank <paramref name="to"/>, behind what it took before; how many.</summary>
  int Write(int to, byte[] bytes, int count);
  /// <summary>Gives what has come from rank <paramref name="from"/>, at most so many bytes; how many, 0 where there is nothing.</summary>
  int Read(int from, byte[] bytes, int most);
}

/// <summary>A transport as native code calls it: one call at a time.</summary>
internal sealed unsafe class TransportEnd {
  private readonly ITransport transport;
  private readonly byte[] piece = new byte[64 * 1024];

  internal TransportEnd(ITransport transport) { this.transport = transport; }

  internal long Write(int to, byte* bytes, long count) {
    int now = (int)Math.Min(count, piece.Length);
    new ReadOnlySpan<byte>(bytes, now).CopyTo(piece);
    return transport.Write(to, piece, now);
  }

  internal long Read(int from, byte* bytes, long count) {
    int most = (int)Math.Min(count, piece.Length), given = transport.Read(from, piece, most);
    if (given > 0 && given <= most) new ReadOnlySpan<byte>(piece, 0, given).CopyTo(new Span<byte>(bytes, most));
    return given;  // one that is out of bounds is the library's to refuse
  }

  /// <summary>What was thrown, in words that end with a zero.</summary>
  internal static IntPtr Say(Exception exception, byte* reason, int room) {
    byte[] text = Encoding.UTF8.GetBytes(exception.GetType().Name + ": " + exception.Message);
    int count = Math.Min(text.Length, room - 1);
    for (int i = 0; i < count; ++i) reason[i] = text[i];
    reason[count] = 0;
    return IntPtr.Zero;
  }
}

}
