"""OpenGL drawing: vertex arrays with a shader program, textures of numbers, and a cached canvas."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyglet import gl
from pyglet.graphics.shader import Shader, ShaderProgram


class Mesh:
    """Vertices drawn by one shader program in one call.

    Parameters
    ----------
    vertex, fragment : str
        Sources of the shaders.
    layout : structured dtype
        Layout of a vertex: fields of 32-bit floats, named as in the vertex shader.
    mode : int
        Primitive type, such as ``GL_TRIANGLES``.
    """

    def __init__(self, vertex: str, fragment: str, layout: np.dtype[Any], mode: int) -> None:
        self.program = ShaderProgram(Shader(vertex, "vertex"), Shader(fragment, "fragment"))
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

    def set_uniforms(self, uniforms: Mapping[str, Any]) -> None:
        """Set uniform variables of the program."""
        self.program.use()
        for name, value in uniforms.items():
            self.program[name] = value


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
        for name, value in (
            (gl.GL_TEXTURE_MIN_FILTER, gl.GL_LINEAR),
            (gl.GL_TEXTURE_MAG_FILTER, gl.GL_LINEAR),
            (gl.GL_TEXTURE_WRAP_S, gl.GL_CLAMP_TO_EDGE),
            (gl.GL_TEXTURE_WRAP_T, gl.GL_CLAMP_TO_EDGE),
        ):
            gl.glTexParameteri(gl.GL_TEXTURE_2D, name, value)
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
