% Remote control of a session from MATLAB (R2020b or newer) or Octave (package instrument-control).
% control_client(HOST, PORT, TOKEN), with the session: haptics run --device virtual-joystick --headless --control websocket
function control_client(host, port, token)
  if exist('OCTAVE_VERSION', 'builtin'), pkg('load', 'instrument-control'); end
  line = connect_to(host, port, token);
  status = request(line, 'status', struct());
  printf_line('device: %s', status.device);
  changed = request(line, 'configure', struct('law', struct('name', 'coulomb', 'force', 4.0), 'gate', true));
  request(line, 'mark', struct('marker', 1));
  request(line, 'wait', struct('seconds', 1.0));
  rows = request(line, 'since', struct('tick', changed.tick, 'columns', {{'friction_force_x_n', 'tick'}}));
  printf_line('from tick %d on up to %.2f N along x', changed.tick, max(abs(rows.friction_force_x_n)));
  request(line, 'stop', struct());
end

function printf_line(form, varargin)
  fprintf([form '\n'], varargin{:});
end

function line = connect_to(host, port, token)
  line = tcpclient(host, port, 'Timeout', 60);
  key = 'aGFwdGljcy1jbGllbnQtMQ==';  % any 16 bytes in base64
  head = sprintf(['GET / HTTP/1.1\r\nHost: %s:%d\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n' ...
    'Sec-WebSocket-Key: %s\r\nSec-WebSocket-Version: 13\r\nAuthorization: Bearer %s\r\n\r\n'], host, port, key, token);
  write(line, uint8(head));
  answer = '';
  while isempty(strfind(answer, sprintf('\r\n\r\n')))
    answer = [answer char(read(line, 1))]; %#ok<AGROW>
  end
  if isempty(strfind(answer, ' 101 ')), error('the session refused the connection: %s', answer); end
end

function result = request(line, verb, fields)
  fields.id = 1;
  fields.verb = verb;
  send_text(line, jsonencode(fields));
  reply = jsondecode(receive_text(line));
  if ~reply.ok, error('%s', reply.error); end
  result = reply.result;
end

function send_text(line, text)  % one masked frame (RFC 6455); the mask is zero
  data = uint8(text);
  count = numel(data);
  if count < 126, head = uint8([129 128 + count]);
  else, head = uint8([129 254 floor(count / 256) mod(count, 256)]); end
  write(line, [head uint8([0 0 0 0]) data]);
end

function text = receive_text(line)
  head = double(read(line, 2));
  count = head(2);
  if count == 126, count = double(read(line, 2)) * [256; 1];
  elseif count == 127, count = double(read(line, 8)) * 256 .^ (7:-1:0)'; end
  text = char(read(line, count));
end
