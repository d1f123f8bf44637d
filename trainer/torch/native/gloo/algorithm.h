// See context.h: nothing of it is mentioned.
#pragma once
