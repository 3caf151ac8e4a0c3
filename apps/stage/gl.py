"""OpenGL drawing: shader programs, vertex arrays, textures of numbers, and a cached canvas.

Shapes are given by their signed distance, so that they are smooth at every size. The textures of the ground are
procedural, computed from the position on the plane [mm]. The shaders are in GLSL 3.30.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyglet import gl
from pyglet.graphics.shader import Shader, ShaderProgram

from apps.stage.shapes import MARK_VERTEX, RIBBON_VERTEX, Marks, Vertices

_HEADER = "#version 330 core\n"

_TO_SCREEN = """
uniform vec2 window_size;
vec4 on_screen(vec2 pixel) { return vec4(2.0 * pixel / window_size - 1.0, 0.0, 1.0); }
"""

_MARK_VERTEX = """
in vec2 place; in vec2 local; in vec2 half_size; in vec4 style; in vec4 colour; in vec4 halo;
out vec2 at; flat out vec2 reach; flat out vec4 shape; flat out vec4 ink; flat out vec4 edge;
void main() {
    at = local; reach = half_size; shape = style; ink = colour; edge = halo;
    gl_Position = on_screen(place);
}
"""

_MARK_FRAGMENT = """
in vec2 at; flat in vec2 reach; flat in vec4 shape; flat in vec4 ink; flat in vec4 edge;
out vec4 result;

float box(vec2 p, vec2 b, float r) {
    vec2 q = abs(p) - b + r;
    return length(max(q, 0.0)) + min(max(q.x, q.y), 0.0) - r;
}

float triangle(vec2 p, vec2 b) {  // its tip is at the right
    vec2 slope = normalize(vec2(b.y, 2.0 * b.x));
    return max(dot(vec2(p.x - b.x, abs(p.y)), slope), -b.x - p.x);
}

void main() {
    float d = shape.x < 0.5 ? box(at, reach, shape.y) : triangle(at, reach);
    if (shape.z > 0.0) d = abs(d + 0.5 * shape.z) - 0.5 * shape.z;
    float inside = clamp(0.5 - d, 0.0, 1.0);
    float around = clamp(0.5 - (d - shape.w), 0.0, 1.0) * 0.85;
    float opacity = inside + (1.0 - inside) * around;
    vec3 tone = mix(edge.rgb, ink.rgb, inside / max(opacity, 1e-4));
    result = vec4(tone, opacity * ink.a);
}
"""

_RIBBON_VERTEX = """
in vec2 place; in float across; in float half_width; in vec4 colour;
out float off; flat out float reach; out vec4 ink;
void main() { off = across; reach = half_width; ink = colour; gl_Position = on_screen(place); }
"""

_RIBBON_FRAGMENT = """
in float off; flat in float reach; in vec4 ink;
out vec4 result;
void main() { result = vec4(ink.rgb, ink.a * clamp(reach + 0.5 - abs(off), 0.0, 1.0)); }
"""

_GROUND_VERTEX = """
in vec2 place; in vec2 millimetres; in vec2 share;
out vec2 at; out vec2 where;
void main() { at = millimetres; where = share; gl_Position = on_screen(place); }
"""

_NOISE = """
float hash(vec2 p) {
    p = fract(p * vec2(123.34, 456.21));
    p += dot(p, p + 45.32);
    return fract(p.x * p.y);
}

vec2 hash2(vec2 p) { return vec2(hash(p), hash(p + 17.17)); }

float noise(vec2 p) {
    vec2 i = floor(p), f = fract(p);
    f = f * f * (3.0 - 2.0 * f);
    float low = mix(hash(i), hash(i + vec2(1, 0)), f.x);
    return mix(low, mix(hash(i + vec2(0, 1)), hash(i + vec2(1, 1)), f.x), f.y);
}

float cloud(vec2 p) {
    float sum = 0.0, part = 0.5;
    for (int octave = 0; octave < 4; octave++) { sum += part * noise(p); p = p * 2.03 + 11.3; part *= 0.5; }
    return sum / 0.9375;
}

float crack(vec2 p) {  // distance to the nearest border between cells around scattered points
    vec2 i = floor(p), f = fract(p);
    float nearest = 8.0, second = 8.0;
    for (int y = -1; y <= 1; y++) for (int x = -1; x <= 1; x++) {
        vec2 r = vec2(x, y) + 0.9 * hash2(i + vec2(x, y)) - f;
        float d = dot(r, r);
        if (d < nearest) { second = nearest; nearest = d; } else if (d < second) second = d;
    }
    return sqrt(second) - sqrt(nearest);
}
"""

_MATERIALS = """
vec3 ice(vec2 p) {
    vec2 bent = p + 3.5 * vec2(noise(p * 0.13), noise(p * 0.13 + 7.0));
    vec3 tone = mix(vec3(0.60, 0.76, 0.88), vec3(0.82, 0.92, 0.98), cloud(p * 0.07));
    float lines = smoothstep(0.045, 0.0, crack(bent * 0.042)) + 0.55 * smoothstep(0.05, 0.0, crack(bent * 0.10 + 3.0));
    return tone + 0.16 * lines + 0.05 * (noise(p * 4.0) - 0.5);
}

vec3 wood(vec2 p) {
    float board = floor(p.y / 22.0);
    vec2 q = p + vec2(57.0 * board, 13.0 * board);
    float growth = 0.30 * q.y + 3.4 * cloud(vec2(q.x * 0.010, q.y * 0.045));
    float ring = fract(growth);
    float late = smoothstep(0.25, 0.85, ring) * (1.0 - smoothstep(0.90, 1.0, ring));
    vec3 tone = mix(vec3(0.76, 0.56, 0.35), vec3(0.52, 0.33, 0.18), late);
    float fibre = noise(vec2(q.x * 0.22, q.y * 7.0)) - 0.5;
    float seam = smoothstep(0.35, 0.0, abs(fract(p.y / 22.0 + 0.5) - 0.5) * 22.0);
    return tone * (1.0 + 0.16 * fibre + 0.06 * (hash(vec2(board, 3.0)) - 0.5)) * (1.0 - 0.45 * seam);
}

vec3 rubber(vec2 p) {
    vec2 turned = vec2(p.x + p.y, p.y - p.x) * 0.7071 / 4.0;
    vec2 cell = fract(turned) - 0.5;
    float stud = 1.0 - smoothstep(0.30, 0.36, max(abs(cell.x), abs(cell.y)));
    float lit = stud * 0.10 + 0.07 * stud * (cell.y - cell.x);
    return vec3(0.20, 0.205, 0.215) + lit + 0.035 * (noise(p * 3.1) - 0.5);
}

vec3 metal(vec2 p) {
    float brushed = 0.6 * noise(vec2(p.x * 0.10, p.y * 8.0)) + 0.4 * noise(vec2(p.x * 0.33, p.y * 21.0));
    float sheen = 0.5 + 0.5 * sin(p.x * 0.055 + 0.6 * sin(p.y * 0.02));
    return vec3(0.55, 0.58, 0.62) + 0.16 * (brushed - 0.5) + 0.10 * sheen * sheen;
}

vec3 glass(vec2 p) {
    float along = p.x + 0.55 * p.y;
    float glint = smoothstep(0.86, 1.0, sin(along * 0.085)) + 0.6 * smoothstep(0.93, 1.0, sin(along * 0.085 + 0.9));
    return vec3(0.52, 0.72, 0.72) + 0.10 * (cloud(p * 0.02) - 0.5) + 0.13 * glint;
}
"""

_GROUND_FRAGMENT = """
in vec2 at; in vec2 where;
out vec4 result;
uniform sampler2D looks;    // shares of ice, wood, rubber, metal
uniform sampler2D others;   // share of glass; shade; distances to the border of a region and of a wall
uniform vec3 plain_tone; uniform vec3 strong_tone; uniform vec3 line_tone; uniform vec3 solid_tone;
uniform vec3 veil; uniform float veil_share;
uniform float raster;       // distance between its lines [mm]
uniform float pixel;        // size of a pixel [mm]
uniform float reach;        // what 0 and 255 stand for in the distances [mm], either side of 0.5
uniform float level_share;  // how much what is plain is shaded
float lines(vec2 p, float every, float width) {
    vec2 off = abs(fract(p / every + 0.5) - 0.5) * every;
    return clamp(0.5 * width + 0.5 - min(off.x, off.y) / pixel, 0.0, 1.0);
}

void main() {
    vec4 four = texture(looks, where), rest = texture(others, where);
    float plain = clamp(1.0 - dot(four, vec4(1.0)) - rest.x, 0.0, 1.0);
    vec3 tone = vec3(0.0);
    if (four.x > 0.002) tone += four.x * ice(at);
    if (four.y > 0.002) tone += four.y * wood(at);
    if (four.z > 0.002) tone += four.z * rubber(at);
    if (four.w > 0.002) tone += four.w * metal(at);
    if (rest.x > 0.002) tone += rest.x * glass(at);
    tone = mix(tone, veil * (1.0 - plain), veil_share) * mix(1.28, 0.72, rest.y);
    tone += plain * mix(plain_tone, strong_tone, level_share * rest.y);
    tone = mix(tone, line_tone, 0.16 * lines(at, raster, 1.0));
    float border = (rest.z - 0.5) * 2.0 * reach / pixel;
    tone = mix(tone, line_tone, 0.55 * clamp(1.25 - abs(border), 0.0, 1.0));
    float wall = (rest.w - 0.5) * 2.0 * reach / pixel;  // negative inside
    if (wall < 1.5) {
        float stripe = abs(fract((at.x - at.y) / (9.0 * pixel) ) - 0.5) * 2.0;
        vec3 solid = mix(solid_tone, line_tone, 0.40 * smoothstep(0.55, 0.75, stripe));
        solid = mix(solid, line_tone, 0.85 * clamp(3.0 + wall, 0.0, 1.0));
        tone = mix(tone, solid, clamp(0.5 - wall, 0.0, 1.0));
    } else tone *= 1.0 - 0.22 * exp(-wall / 7.0);  // a wall throws a little shadow
    result = vec4(tone, 1.0);
}
"""


MARK_SHADERS = _MARK_VERTEX, _MARK_FRAGMENT
RIBBON_SHADERS = _RIBBON_VERTEX, _RIBBON_FRAGMENT
GROUND_SHADERS = _GROUND_VERTEX, _NOISE + _MATERIALS + _GROUND_FRAGMENT
"""Vertex and fragment shader of the shapes (`shapes.Marks`), of the ribbons, and of the ground."""


class Mesh:
    """Vertices drawn by one shader program in one call.

    Parameters
    ----------
    shaders : (str, str)
        Sources of the vertex shader and the fragment shader.
    layout : structured dtype
        Layout of a vertex: fields of 32-bit floats, named as in the vertex shader.
    mode : int
        Primitive type, such as ``GL_TRIANGLES``.
    """

    def __init__(self, shaders: tuple[str, str], layout: np.dtype[Any], mode: int) -> None:
        vertex, fragment = shaders
        self.program = ShaderProgram(
            Shader(_HEADER + _TO_SCREEN + vertex, "vertex"), Shader(_HEADER + fragment, "fragment")
        )
        self._mode = mode
        self._array, self._buffer = gl.GLuint(), gl.GLuint()
        gl.glGenVertexArrays(1, self._array)
        gl.glGenBuffers(1, self._buffer)
        gl.glBindVertexArray(self._array)
        gl.glBindBuffer(gl.GL_ARRAY_BUFFER, self._buffer)
        for name in layout.names or ():
            location = gl.glGetAttribLocation(self.program.id, ctypes.create_string_buffer(name.encode()))
            kind, offset = layout.fields[name][:2]  # type: ignore[index]
            place = ctypes.c_void_p(offset)
            gl.glEnableVertexAttribArray(location)
            gl.glVertexAttribPointer(location, kind.itemsize // 4, gl.GL_FLOAT, False, layout.itemsize, place)
        gl.glBindVertexArray(0)

    def draw(self, vertices: NDArray[np.void], size: tuple[float, float]) -> None:
        """Draw vertices on a window of the given size [pixel]."""
        if not len(vertices):
            return
        gl.glEnable(gl.GL_BLEND)
        gl.glBlendFunc(gl.GL_SRC_ALPHA, gl.GL_ONE_MINUS_SRC_ALPHA)
        self.program.use()
        self.program["window_size"] = size
        gl.glBindVertexArray(self._array)
        gl.glBindBuffer(gl.GL_ARRAY_BUFFER, self._buffer)
        data = np.ascontiguousarray(vertices)
        gl.glBufferData(gl.GL_ARRAY_BUFFER, data.nbytes, data.ctypes.data_as(ctypes.c_void_p), gl.GL_STREAM_DRAW)
        gl.glDrawArrays(self._mode, 0, len(data))
        gl.glBindVertexArray(0)


class NumberPicture:
    """Texture with four numbers per cell, 0 to 255, interpolated between cells."""

    def __init__(self, unit: int) -> None:
        self._unit = unit
        self._texture = gl.GLuint()
        gl.glGenTextures(1, self._texture)

    def put(self, numbers: NDArray[np.uint8]) -> None:
        """Upload numbers, (rows, columns, 4), lowest row first."""
        rows, columns, _ = numbers.shape
        data = np.ascontiguousarray(numbers)
        self.use()
        for name in (gl.GL_TEXTURE_MIN_FILTER, gl.GL_TEXTURE_MAG_FILTER):
            gl.glTexParameteri(gl.GL_TEXTURE_2D, name, gl.GL_LINEAR)
        for name in (gl.GL_TEXTURE_WRAP_S, gl.GL_TEXTURE_WRAP_T):
            gl.glTexParameteri(gl.GL_TEXTURE_2D, name, gl.GL_CLAMP_TO_EDGE)
        place = data.ctypes.data_as(ctypes.c_void_p)
        kind = gl.GL_RGBA, gl.GL_UNSIGNED_BYTE
        gl.glTexImage2D(gl.GL_TEXTURE_2D, 0, gl.GL_RGBA8, columns, rows, 0, *kind, place)
        gl.glActiveTexture(gl.GL_TEXTURE0)

    def use(self) -> None:
        """Bind the texture for the next draw call."""
        gl.glActiveTexture(gl.GL_TEXTURE0 + self._unit)
        gl.glBindTexture(gl.GL_TEXTURE_2D, self._texture)


class Canvas:
    """Picture of the size of the window that is drawn rarely and shown in every frame."""

    def __init__(self) -> None:
        self._frame, self._store = gl.GLuint(), gl.GLuint()
        gl.glGenFramebuffers(1, self._frame)
        gl.glGenRenderbuffers(1, self._store)
        self._size = (0, 0)

    def begin(self, size: tuple[int, int]) -> None:
        """Direct the following drawing to the canvas, in the given size [pixel of the screen]."""
        gl.glBindFramebuffer(gl.GL_FRAMEBUFFER, self._frame)
        if size != self._size:
            self._size = size
            gl.glBindRenderbuffer(gl.GL_RENDERBUFFER, self._store)
            gl.glRenderbufferStorage(gl.GL_RENDERBUFFER, gl.GL_RGBA8, *size)
            gl.glFramebufferRenderbuffer(gl.GL_FRAMEBUFFER, gl.GL_COLOR_ATTACHMENT0, gl.GL_RENDERBUFFER, self._store)
        gl.glViewport(0, 0, *size)

    def end(self) -> None:
        """Direct the following drawing to the window."""
        gl.glBindFramebuffer(gl.GL_FRAMEBUFFER, 0)

    def show(self) -> None:
        """Copy the canvas to the window."""
        width, height = self._size
        gl.glBindFramebuffer(gl.GL_READ_FRAMEBUFFER, self._frame)
        gl.glBindFramebuffer(gl.GL_DRAW_FRAMEBUFFER, 0)
        gl.glBlitFramebuffer(0, 0, width, height, 0, 0, width, height, gl.GL_COLOR_BUFFER_BIT, gl.GL_NEAREST)
        gl.glBindFramebuffer(gl.GL_FRAMEBUFFER, 0)


class Painter:
    """Draws marks and ribbons on a window of a given size [pixel]."""

    def __init__(self) -> None:
        self._marks = Mesh(MARK_SHADERS, MARK_VERTEX, gl.GL_TRIANGLES)
        self._ribbons = Mesh(RIBBON_SHADERS, RIBBON_VERTEX, gl.GL_TRIANGLE_STRIP)
        self.size = (1.0, 1.0)
        self.shapes = 0

    def marks(self, marks: Marks) -> None:
        """Draw the collected shapes."""
        self._marks.draw(marks.vertices, self.size)
        self.shapes += marks.count

    def ribbon(self, strip: Vertices) -> None:
        """Draw a strip."""
        self._ribbons.draw(strip, self.size)
        self.shapes += 1
