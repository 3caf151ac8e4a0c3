// Remote control of a session from C# (.NET, Mono, Unity): ControlClient HOST:PORT TOKEN
// Start the session with: haptics run --device virtual-joystick --headless --control websocket
using System;
using System.IO;
using System.Net.WebSockets;
using System.Text;
using System.Threading;
using System.Threading.Tasks;

public sealed class ControlClient : IDisposable
{
    private readonly ClientWebSocket socket = new ClientWebSocket();
    private int count;

    public async Task Connect(string address, string token)
    {
        socket.Options.SetRequestHeader("Authorization", "Bearer " + token);
        await socket.ConnectAsync(new Uri("ws://" + address + "/"), CancellationToken.None);
    }

    // Sends a request such as ("mark", "\"marker\": 1") and returns the JSON text of its reply.
    public async Task<string> Request(string verb, string fields = "")
    {
        string id = (++count).ToString(), text = "{\"id\": " + id + ", \"verb\": \"" + verb + "\"" + (fields == "" ? "" : ", " + fields) + "}";
        var message = new ArraySegment<byte>(Encoding.UTF8.GetBytes(text));
        await socket.SendAsync(message, WebSocketMessageType.Text, true, CancellationToken.None);
        while (true)
        {
            string reply = await Receive();
            if (reply.StartsWith("{\"id\":" + id + ",")) return reply; // others are rows of a subscription
        }
    }

    private async Task<string> Receive()
    {
        var (buffer, message) = (new ArraySegment<byte>(new byte[65536]), new MemoryStream());
        WebSocketReceiveResult part;
        do
        {
            part = await socket.ReceiveAsync(buffer, CancellationToken.None);
            message.Write(buffer.Array, 0, part.Count);
        } while (!part.EndOfMessage);
        return Encoding.UTF8.GetString(message.ToArray());
    }

    public void Dispose() => socket.Dispose();

    public static void Main(string[] arguments) => Run(arguments[0], arguments[1]).GetAwaiter().GetResult();
    private static async Task Run(string address, string token)
    {
        using (var session = new ControlClient())
        {
            await session.Connect(address, token);
            Console.WriteLine(await session.Request("status"));
            Console.WriteLine(await session.Request("configure", "\"law\": {\"name\": \"coulomb\", \"force\": 4.0}, \"gate\": true"));
            Console.WriteLine(await session.Request("wait", "\"seconds\": 1.0"));
            await session.Request("stop");
        }
    }
}
