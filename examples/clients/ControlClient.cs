// Remote control of a session from C# (.NET 6 or Unity 2022): ControlClient HOST:PORT TOKEN
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
        string id = (++count).ToString();
        string text = "{\"id\": " + id + ", \"verb\": \"" + verb + "\"" + (fields == "" ? "" : ", " + fields) + "}";
        await socket.SendAsync(Encoding.UTF8.GetBytes(text), WebSocketMessageType.Text, true, CancellationToken.None);
        while (true)
        {
            string reply = await Receive();
            if (reply.StartsWith("{\"id\":" + id + ",")) return reply; // others are rows of a subscription
        }
    }

    private async Task<string> Receive()
    {
        var buffer = new byte[65536];
        using var message = new MemoryStream();
        WebSocketReceiveResult part;
        do
        {
            part = await socket.ReceiveAsync(buffer, CancellationToken.None);
            message.Write(buffer, 0, part.Count);
        } while (!part.EndOfMessage);
        return Encoding.UTF8.GetString(message.ToArray());
    }

    public void Dispose() => socket.Dispose();

    public static async Task Main(string[] arguments)
    {
        using var session = new ControlClient();
        await session.Connect(arguments[0], arguments[1]);
        Console.WriteLine(await session.Request("configure", "\"law\": {\"name\": \"coulomb\", \"force\": 4.0}, \"gate\": true"));
        Console.WriteLine(await session.Request("wait", "\"seconds\": 1.0"));
        Console.WriteLine(await session.Request("stop"));
    }
}
